-- Count the checks since a time, up to a limit. Their ids are UUIDv7 with the time in the first 48 bits, so they are
-- found by the order of the key.
SELECT count(*) AS checks
FROM (
    SELECT 1
    FROM check_attempt AS c
    WHERE c.attempt_id >= %(since_id)s AND c.counted
    LIMIT %(max_count)s
) AS counted
