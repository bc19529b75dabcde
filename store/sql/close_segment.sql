-- Close the open segment. The caller holds the log alone, so nothing is under way in it, and nothing will ever be added.
UPDATE segment
SET state = 'closed', closed_at = clock_timestamp()
WHERE id = %(segment_id)s AND state = 'open'
