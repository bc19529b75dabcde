-- Hold deliveries of an ordered group that no consumer has begun in their queue, without counting a retry, and return
-- the handles' numbers in the arrays. A delivery that was acked, whose time is over or that was handed out again is not
-- found. Handles come sorted, so two statements lock rows in the same order; each handle is looked up by a separate
-- index probe.
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

UPDATE receipt AS r
SET state = 'held', nonce = 0, expires_at = now() + make_interval(secs => %(delay_seconds)s)
FROM found
WHERE r.ctid = found.tid AND (r.nonce = found.nonce AND r.state = 'flight' AND r.expires_at > now()) IS TRUE
RETURNING found.number
