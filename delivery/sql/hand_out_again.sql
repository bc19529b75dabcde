-- Hand out messages of an ordered group that were held or parked. The caller holds the lock of the group's progress.
WITH found AS (
    SELECT h.nonce, h.invisible_seconds, f.tid
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
        %(nonce)b::bigint [], %(invisible_seconds)b::double precision []
    ) AS h (group_id, topic_id, queue_id, queue_offset, nonce, invisible_seconds)
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
    state = 'flight', nonce = found.nonce, received_at = now(),
    expires_at = now() + make_interval(secs => found.invisible_seconds)
FROM found
WHERE r.ctid = found.tid
