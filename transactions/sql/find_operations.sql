-- Find the operations of a transaction, the oldest first: the decision by the index of decisions, the other operations
-- by another index; they are sorted afterwards. Each condition is the condition of its partial index, so that no plan
-- can scan all operations.
-- Row: An operation of a transaction (COMMIT, ROLLBACK, UNKNOWN, DISCARD or RESUME), and by whom.
-- Null: remark.
-- Types: decision Decision, decided_by Decider.
WITH found AS MATERIALIZED (
    SELECT o.operation_id, o.decision, o.decided_by, o.decided_at, o.check_times, o.remark
    FROM operation AS o
    WHERE o.transaction_id = %(transaction_id)s AND o.decision IN ('COMMIT', 'ROLLBACK')
    UNION ALL
    SELECT o.operation_id, o.decision, o.decided_by, o.decided_at, o.check_times, o.remark
    FROM operation AS o
    WHERE o.transaction_id = %(transaction_id)s AND NOT o.decision IN ('COMMIT', 'ROLLBACK')
)

SELECT f.decision, f.decided_by, f.decided_at, f.check_times, f.remark
FROM found AS f
ORDER BY f.operation_id
LIMIT %(max_events)s
