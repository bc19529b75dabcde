-- Hold failed messages of ordered groups in their queue until their retry is due. The caller holds the rows' locks.
WITH found AS (
    SELECT h.wait_seconds, f.tid
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
        %(wait_seconds)b::double precision []
    ) AS h (group_id, topic_id, queue_id, queue_offset, wait_seconds)
    CROSS JOIN LATERAL (
        SELECT r.ctid AS tid
        FROM receipt AS r
        WHERE
            r.group_id = h.group_id AND r.topic_id = h.topic_id AND r.queue_id = h.queue_id
            AND r.queue_offset = h.queue_offset
        LIMIT 1
    ) AS f
)

UPDATE receipt AS r
SET
    state = 'held', nonce = 0, reconsume_times = r.reconsume_times + 1,
    expires_at = now() + make_interval(secs => found.wait_seconds)
FROM found
WHERE r.ctid = found.tid
