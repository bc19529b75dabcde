-- Delete deliveries of groups that are gone, so many at most: nobody can ack them, and nothing of them comes again. One
-- that somebody is just settling is left to the next time.
DELETE FROM receipt AS r
USING (
    SELECT g.group_id, g.topic_id, g.queue_id, g.queue_offset
    FROM receipt AS g
    WHERE g.group_id = any(%(group_ids)s::integer [])
    ORDER BY g.group_id, g.topic_id, g.queue_id, g.queue_offset
    LIMIT %(max_receipts)s
    FOR UPDATE SKIP LOCKED
) AS gone
WHERE
    r.group_id = gone.group_id AND r.topic_id = gone.topic_id AND r.queue_id = gone.queue_id
    AND r.queue_offset = gone.queue_offset
RETURNING r.group_id
