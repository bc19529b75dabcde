-- Count the latest checks since a time by outcome, up to a limit. Their ids are UUIDv7, so the order of the key is the
-- order of time.
-- Row: The number of checks with one outcome.
SELECT latest.outcome, count(*) AS checks
FROM (
    SELECT
        CASE
            WHEN NOT c.counted THEN 'unreached'
            WHEN c.answer IN ('COMMIT', 'ROLLBACK') THEN 'decided'
            WHEN c.status = 200 THEN 'unknown'
            WHEN c.endpoint_id IS NULL THEN 'handed_out'
            ELSE 'unanswered'
        END AS outcome
    FROM check_attempt AS c
    WHERE c.attempt_id >= %(since_id)s
    ORDER BY c.attempt_id DESC
    LIMIT %(max_count)s
) AS latest
GROUP BY latest.outcome
