-- Read the check attempts.
SELECT
    attempt_id, segment_id, transaction_id, endpoint_id, endpoint_url, asked_at, counted, status, latency_ms, answer,
    reason
FROM check_attempt
