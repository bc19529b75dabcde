-- Ack deliveries: this delete ends each of them, and gives its place in the arrays. One not returned was acked before, or
-- its time is over, or it was handed out again since (another nonce): whoever holds it now is not touched. The handles come
-- sorted, so that two acks lock rows in the same order; each is probed on its own, whatever the planner thinks is in flight.
WITH found AS (
    SELECT a.nonce, a.place, f.tid
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
        %(nonce)b::bigint []
    ) WITH ORDINALITY AS a (group_id, topic_id, queue_id, queue_offset, nonce, place)
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
RETURNING found.place
