-- Count the latest `max_halves` discarded transactions by producer group and by the last failure of their checks, by
-- the index of discarded half messages.
-- Row: The number of undecided transactions of a producer group whose last check failed for the same reason.
-- Null: last_failure.
SELECT g.name AS producer_group, h.last_failure, count(*) AS halves
FROM (
    SELECT d.producer_group_id, d.last_failure
    FROM half_message AS d
    WHERE d.discarded_at IS NOT NULL
    ORDER BY d.discarded_at DESC, d.transaction_id DESC
    LIMIT %(max_halves)s
) AS h
INNER JOIN producer_group AS g ON h.producer_group_id = g.id
GROUP BY g.name, h.last_failure
ORDER BY halves DESC, g.name
LIMIT %(max_rows)s
