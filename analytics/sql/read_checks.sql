-- The check attempts for the export.
SELECT
    c.segment_id, c.segment_id AS segment, c.attempt_id, c.transaction_id, c.endpoint_url, c.asked_at, c.counted, c.status, c.latency_ms, c.answer,
    c.reason,
    (
        c.asked_at < (SELECT (i.first_numbers ->> 'noted_at')::timestamptz FROM cell_identity AS i)
    ) IS TRUE AS copied
FROM check_attempt AS c
