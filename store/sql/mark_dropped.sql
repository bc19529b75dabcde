-- Mark a segment as dropped: none of its partitions is left.
UPDATE segment
SET state = 'dropped', dropped_at = clock_timestamp()
WHERE id = %(segment_id)s AND state = 'closed'
