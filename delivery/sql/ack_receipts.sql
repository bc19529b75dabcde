-- Ack deliveries: delete their receipts, and return the numbers of their handles in the arrays. No row is found for a
-- handle whose delivery was acked before, whose time is over, or whose message was handed out again with another nonce.
-- Handles come sorted, so two acks lock rows in the same order; each handle is looked up by a separate index probe, so
-- the planner's estimate of the number of rows does not matter.
WITH found AS (
    SELECT a.nonce, a.number, f.tid
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
        %(nonce)b::bigint []
    ) WITH ORDINALITY AS a (group_id, topic_id, queue_id, queue_offset, nonce, number)
    CROSS JOIN LATERAL (
        SELECT r.ctid AS tid
        FROM receipt AS r
        WHERE
            r.group_id = a.group_id AND r.topic_id = a.topic_id AND r.queue_id = a.queue_id
            AND r.queue_offset = a.queue_offset
        LIMIT 1
    ) AS f
)

DELETE FROM receipt AS r
USING found
WHERE r.ctid = found.tid AND (r.nonce = found.nonce AND r.state = 'flight' AND r.expires_at > now()) IS TRUE
RETURNING found.number
