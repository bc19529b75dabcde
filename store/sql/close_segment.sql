-- Close the open segment. The caller holds the log alone, so no write is under way, and no row is ever added later.
UPDATE segment
SET state = 'closed', closed_at = clock_timestamp()
WHERE id = %(segment_id)s AND state = 'open'
