-- Count the ended transactions by segment and state, up to the last operation that an export holds.
-- Row: The number of transactions of a segment that were ended in one way.
SELECT
    o.segment_id AS segment, CASE o.decision WHEN 'COMMIT' THEN 'COMMITTED' ELSE 'ROLLED_BACK' END AS state,
    count(*) AS transactions
FROM operation AS o
WHERE o.operation_id <= %(operation_id)s AND o.decision IN ('COMMIT', 'ROLLBACK')
GROUP BY o.segment_id, o.decision
