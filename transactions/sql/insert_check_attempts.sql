-- Insert check attempts with their answers, in the transaction that writes their outcome.
INSERT INTO check_attempt (
    segment_id, attempt_id, transaction_id, endpoint_id, endpoint_url, asked_at, counted, status, latency_ms, answer, reason
)
SELECT
    %(segment_id)s, a.attempt_id, a.transaction_id, a.endpoint_id, a.endpoint_url,
    now() - make_interval(secs => a.latency_ms / 1000.0), a.counted, a.status, a.latency_ms, a.answer, a.reason
FROM unnest(
    %(attempt_id)b::uuid [], %(transaction_id)b::uuid [], %(endpoint_id)b::integer [], %(endpoint_url)b::text [],
    %(counted)b::boolean [], %(status)b::integer [], %(latency_ms)b::integer [], %(answer)b::text [],
    %(reason)b::text []
) AS a (attempt_id, transaction_id, endpoint_id, endpoint_url, counted, status, latency_ms, answer, reason)
