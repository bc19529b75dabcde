-- Estimate the same for a long range from operations at even distances: each stands for `every` operations.
SELECT
    count(*) FILTER (WHERE probe.decision = 'COMMIT') * %(every)s AS commits,
    count(*) FILTER (WHERE probe.decision = 'ROLLBACK') * %(every)s AS rollbacks,
    count(*) FILTER (WHERE probe.decision IN ('COMMIT', 'ROLLBACK') AND probe.stored_at >= %(since)s)
    * %(every)s AS begun
FROM generate_series(%(since_id)s::bigint, %(next_id)s::bigint - 1, %(every)s::bigint) AS place (operation_id)
CROSS JOIN LATERAL (
    SELECT o.decision, o.stored_at
    FROM operation AS o
    WHERE o.operation_id >= place.operation_id
    ORDER BY o.operation_id
    LIMIT 1
) AS probe
