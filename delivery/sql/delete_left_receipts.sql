-- Delete deliveries of groups that are gone, so many at most: nobody can ack them, and nothing of them comes again. One
-- that somebody is just settling is left to the next time.
DELETE FROM receipt AS r
WHERE r.ctid = any(array(
    SELECT g.ctid
    FROM receipt AS g
    WHERE g.group_id = any(%(group_ids)s::integer [])
    ORDER BY g.group_id, g.topic_id, g.queue_id, g.queue_offset
    LIMIT %(max_receipts)s
    FOR UPDATE SKIP LOCKED
))
RETURNING r.group_id
