-- Find what was said of a transaction, the first first.
SELECT decision, decided_by, decided_at, check_times, remark
FROM operation
WHERE transaction_id = %(transaction_id)s
ORDER BY operation_id
LIMIT %(max_events)s
