-- Find the operations of a transaction, the first first. They are found by index, and sorted afterwards.
WITH found AS MATERIALIZED (
    SELECT o.operation_id, o.decision, o.decided_by, o.decided_at, o.check_times, o.remark
    FROM operation AS o
    WHERE o.transaction_id = %(transaction_id)s
)

SELECT f.decision, f.decided_by, f.decided_at, f.check_times, f.remark
FROM found AS f
ORDER BY f.operation_id
LIMIT %(max_events)s
