-- Count the decisions in a short range of operations: the commits, the rollbacks, the messages of discarded
-- transactions, and the decided transactions that were begun in the same time. Operations of all producer groups count,
-- also of deleted ones, or only of groups whose names begin with one of `starts`. No WHERE names the decision:
-- PostgreSQL would then walk the index of all decisions.
-- Row: The numbers of decisions in a range of operations. `discarded` counts messages; `begun`: decided transactions
--    that were begun in the same time.
SELECT
    count(*) FILTER (WHERE o.decision = 'COMMIT') AS commits,
    count(*) FILTER (WHERE o.decision = 'ROLLBACK') AS rollbacks,
    coalesce(
        sum(coalesce(cardinality(o.topic_ids), 1)) FILTER (WHERE o.decision = 'DISCARD'), 0
    )::bigint AS discarded,
    count(*) FILTER (WHERE o.decision IN ('COMMIT', 'ROLLBACK') AND o.stored_at >= %(since)s) AS begun
FROM operation AS o
WHERE
    o.operation_id >= %(since_id)s AND o.operation_id < %(next_id)s
    AND (
        %(starts)s::text [] IS NULL
        OR o.producer_group_id IN (SELECT g.id FROM producer_group AS g WHERE g.name ^@ any(%(starts)s::text []))
    )
