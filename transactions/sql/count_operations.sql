-- Count the decisions in a short range of operations, and the decisions whose transaction was begun in the same time.
-- Row: The decisions in a range of operations, and how many of the transactions were begun in the same time.
SELECT
    count(*) FILTER (WHERE o.decision = 'COMMIT') AS commits,
    count(*) FILTER (WHERE o.decision = 'ROLLBACK') AS rollbacks,
    count(*) FILTER (WHERE o.decision IN ('COMMIT', 'ROLLBACK') AND o.stored_at >= %(since)s) AS begun
FROM operation AS o
WHERE o.operation_id >= %(since_id)s AND o.operation_id < %(next_id)s
