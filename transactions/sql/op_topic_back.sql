-- Read the decisions of transactions below an id, the latest first. At most `max_looked_at` operations are read, as in
-- `half_topic_back`.
WITH looked_at AS (
    SELECT *
    FROM operation AS o
    WHERE o.operation_id < %(offset)s
    ORDER BY o.operation_id DESC
    LIMIT %(max_looked_at)s
)

SELECT
    CASE WHEN l.looked_at = %(max_looked_at)s THEN l.lowest END AS go_on_at, d.operation_id, d.transaction_id,
    d.producer_group_id, d.decision, d.decided_at, d.check_times, coalesce(d.log_offsets, ARRAY[d.log_offset]) AS log_offsets
FROM (SELECT count(*) AS looked_at, min(operation_id) AS lowest FROM looked_at) AS l
LEFT JOIN LATERAL (
    SELECT *
    FROM looked_at
    WHERE decision IN ('COMMIT', 'ROLLBACK') AND decided_at >= %(since)s AND decided_at < %(until)s
    ORDER BY operation_id DESC
    LIMIT %(max_rows)s
) AS d ON true
ORDER BY d.operation_id DESC
