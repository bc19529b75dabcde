-- Count the checks that were asked since a time, up to a limit. Their ids are UUIDv7: the time is in their first 48 bits,
-- so the key's own order finds them.
SELECT count(*) AS checks
FROM (
    SELECT 1
    FROM check_attempt AS c
    WHERE c.attempt_id >= %(since_id)s AND c.counted
    LIMIT %(max_count)s
) AS counted
