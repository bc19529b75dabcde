-- Read the decisions of transactions in the order of their ids from an id on, without discards, resumes and UNKNOWN,
-- which decide nothing. At most `max_looked_at` operations are read, as in `half_topic_ahead`.
-- Row: The decision of a transaction. `go_on_at` and None as in HalfFound.
-- Null: go_on_at, operation_id.
-- Types: decision Decision.
WITH looked_at AS (
    SELECT *
    FROM operation AS o
    WHERE o.operation_id >= %(offset)s
    ORDER BY o.operation_id
    LIMIT %(max_looked_at)s
)

SELECT
    coalesce(l.highest + 1, %(offset)s) AS go_on_at, d.operation_id, d.transaction_id, d.producer_group_id, d.decision,
    d.decided_at, d.check_times, coalesce(d.log_offsets, ARRAY[d.log_offset]) AS log_offsets
FROM (SELECT max(operation_id) AS highest FROM looked_at) AS l
LEFT JOIN LATERAL (
    SELECT *
    FROM looked_at
    WHERE decision IN ('COMMIT', 'ROLLBACK')
    ORDER BY operation_id
    LIMIT %(max_rows)s
) AS d ON true
ORDER BY d.operation_id
