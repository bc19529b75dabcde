-- Count the commits and rollbacks of a range of operations by the minute, in UTC, of their decision, with the time of
-- the first operation of each minute. No WHERE names the decision: PostgreSQL would then walk the index of all
-- decisions. Operations of all producer groups count, also of deleted ones, or only of groups whose names begin with
-- one of `starts`.
-- Row: The numbers of commits and rollbacks of one minute, and the time of its first operation.
SELECT
    date_trunc('minute', o.decided_at, 'UTC') AS minute,
    min(o.decided_at) AS first_at,
    count(*) FILTER (WHERE o.decision = 'COMMIT') AS commits,
    count(*) FILTER (WHERE o.decision = 'ROLLBACK') AS rollbacks
FROM operation AS o
WHERE
    o.operation_id >= %(since_id)s AND o.operation_id < %(next_id)s
    AND (
        %(starts)s::text [] IS NULL
        OR o.producer_group_id IN (SELECT g.id FROM producer_group AS g WHERE g.name ^@ any(%(starts)s::text []))
    )
GROUP BY 1
ORDER BY 1
