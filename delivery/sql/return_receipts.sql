-- Hold deliveries of an ordered group that reached nobody in their place, as they were: no retry is counted. A row that was
-- acked before, whose time is over or that somebody else holds now is left alone. Rows are locked in the order of their key.
WITH locked AS (
    SELECT r.group_id, r.topic_id, r.queue_id, r.queue_offset
    FROM receipt AS r
    INNER JOIN unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
        %(nonce)b::bigint []
    ) AS a (group_id, topic_id, queue_id, queue_offset, nonce)
        ON
            r.group_id = a.group_id AND r.topic_id = a.topic_id AND r.queue_id = a.queue_id
            AND r.queue_offset = a.queue_offset AND r.nonce = a.nonce
    WHERE r.state = 'flight' AND r.expires_at > now()
    ORDER BY r.group_id, r.topic_id, r.queue_id, r.queue_offset
    FOR UPDATE OF r
)

UPDATE receipt AS r
SET state = 'held', nonce = 0, expires_at = now() + make_interval(secs => %(delay_seconds)s)
FROM locked AS l
WHERE
    r.group_id = l.group_id AND r.topic_id = l.topic_id AND r.queue_id = l.queue_id
    AND r.queue_offset = l.queue_offset
