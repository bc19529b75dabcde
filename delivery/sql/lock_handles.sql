-- Lock the receipts that handles prove, in the sorted order of the handles. Each is locked as it is after the end of any
-- transaction that has changed it. So a later statement of this transaction finds it unchanged. A receipt whose time is
-- over is not locked, because its expiry would skip it.
SELECT a.number
FROM unnest(
    %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
    %(nonce)b::bigint []
) WITH ORDINALITY AS a (group_id, topic_id, queue_id, queue_offset, nonce, number)
CROSS JOIN LATERAL (
    SELECT r.nonce
    FROM receipt AS r
    WHERE
        r.group_id = a.group_id AND r.topic_id = a.topic_id AND r.queue_id = a.queue_id
        AND r.queue_offset = a.queue_offset
        AND (r.nonce = a.nonce AND r.state = 'flight' AND r.expires_at > now()) IS TRUE
    LIMIT 1
    FOR UPDATE
) AS held
