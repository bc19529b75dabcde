-- Find the checks of a transaction, the oldest first.
SELECT asked_at, endpoint_url, counted, status, latency_ms, answer, reason
FROM check_attempt
WHERE transaction_id = %(transaction_id)s
ORDER BY asked_at
LIMIT %(max_events)s
