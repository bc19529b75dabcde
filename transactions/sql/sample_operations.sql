-- Estimate the decisions in a long range from a sample: one random operation out of each `every` operations. A sample
-- at even distances would be wrong if the decisions of a producer have a pattern.
SELECT
    count(*) FILTER (WHERE probe.decision = 'COMMIT') * %(every)s AS commits,
    count(*) FILTER (WHERE probe.decision = 'ROLLBACK') * %(every)s AS rollbacks,
    (coalesce(sum(probe.messages) FILTER (WHERE probe.decision = 'DISCARD'), 0) * %(every)s)::bigint AS discarded,
    count(*) FILTER (WHERE probe.decision IN ('COMMIT', 'ROLLBACK') AND probe.stored_at >= %(since)s)
    * %(every)s AS begun
FROM (
    SELECT stretch.begins + floor(random() * %(every)s)::bigint AS operation_id
    FROM generate_series(%(since_id)s::bigint, %(next_id)s::bigint - 1, %(every)s::bigint) AS stretch (begins)
) AS sampled
CROSS JOIN LATERAL (
    SELECT o.decision, o.stored_at, coalesce(cardinality(o.topic_ids), 1) AS messages
    FROM operation AS o
    WHERE o.operation_id >= sampled.operation_id
    ORDER BY o.operation_id
    LIMIT 1
) AS probe
