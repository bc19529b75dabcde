-- Find the checks of a transaction, the oldest first.
-- Row: One check of a transaction, and its answer.
-- Null: endpoint_url, status, latency_ms, answer, reason.
-- Types: answer CheckAnswer.
SELECT asked_at, endpoint_url, counted, status, latency_ms, answer, reason
FROM check_attempt
WHERE transaction_id = %(transaction_id)s
ORDER BY asked_at
LIMIT %(max_events)s
