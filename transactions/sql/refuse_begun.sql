-- Name the places of half messages that are not to be stored, in the register `mq.refused`: those of the repeatable
-- transactions that are known, undecided or decided, and those whose producer group is gone or about to go.
-- The groups are held as in `hold_groups`, so that none is deleted before this transaction ends. One that another session
-- has locked to delete it is passed over: what was begun in it takes the way that waits.
WITH held AS MATERIALIZED (
    SELECT g.id
    FROM producer_group AS g
    WHERE g.id = any(%(group_ids)b::integer [])
    ORDER BY g.id
    FOR KEY SHARE SKIP LOCKED
)

SELECT set_config('mq.refused', coalesce(array_agg(a.place)::text, '{}'), true) AS refused
FROM unnest(%(transaction_id)b::uuid [], %(producer_group_id)b::integer [])
    WITH ORDINALITY AS a (transaction_id, producer_group_id, place)
WHERE
    a.producer_group_id <> ALL(array(SELECT held.id FROM held))
    OR a.transaction_id = any(array(
        SELECT h.transaction_id
        FROM half_message AS h
        WHERE h.transaction_id = any(%(repeatable_transactions)b::uuid [])
        UNION ALL
        SELECT o.transaction_id
        FROM operation AS o
        WHERE
            o.transaction_id = any(%(repeatable_transactions)b::uuid []) AND o.decision IN ('COMMIT', 'ROLLBACK')
    ))
