-- Hand out messages of an ordered group that were held or parked. The caller holds the lock of the group's positions.
UPDATE receipt AS r
SET
    state = 'flight', nonce = h.nonce, received_at = now(),
    expires_at = now() + make_interval(secs => h.invisible_seconds)
FROM unnest(
    %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
    %(nonce)b::bigint [], %(invisible_seconds)b::double precision []
) AS h (group_id, topic_id, queue_id, queue_offset, nonce, invisible_seconds)
WHERE
    r.group_id = h.group_id AND r.topic_id = h.topic_id AND r.queue_id = h.queue_id
    AND r.queue_offset = h.queue_offset
