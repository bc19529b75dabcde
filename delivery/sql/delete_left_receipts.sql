-- Delete receipts of deleted groups, at most max_receipts: these receipts can not be acked and are not redelivered. A
-- row that another transaction has locked is left to the next run.
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
