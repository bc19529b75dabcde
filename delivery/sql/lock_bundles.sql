-- Lock bundles in the sorted order of their keys, as lock_handles locks receipts. A later statement of this transaction
-- finds each bundle unchanged, or the receipts of deliveries that have left it.
SELECT a.number
FROM unnest(
    %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(first_offset)b::bigint [],
    %(nonce)b::bigint []
) WITH ORDINALITY AS a (group_id, topic_id, queue_id, first_offset, nonce, number)
CROSS JOIN LATERAL (
    SELECT b.nonce
    FROM bundle AS b
    WHERE
        b.group_id = a.group_id AND b.topic_id = a.topic_id AND b.queue_id = a.queue_id
        AND b.first_offset = a.first_offset AND b.nonce = a.nonce
    LIMIT 1
    FOR UPDATE
) AS held
