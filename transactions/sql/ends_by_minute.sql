-- Count the commits and rollbacks of a range of operations by the minute, in UTC, of their decision, with the time of the
-- first operation of each minute. The decision is no condition: the index of the decisions would be walked for it.
SELECT
    date_trunc('minute', o.decided_at, 'UTC') AS minute,
    min(o.decided_at) AS first_at,
    count(*) FILTER (WHERE o.decision = 'COMMIT') AS commits,
    count(*) FILTER (WHERE o.decision = 'ROLLBACK') AS rollbacks
FROM operation AS o
WHERE o.operation_id >= %(since_id)s AND o.operation_id < %(next_id)s
GROUP BY 1
ORDER BY 1
