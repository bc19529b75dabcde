-- Count the half messages of each producer group that are not discarded, by the last failure of their checks. Of each
-- group at most `max_halves` of each line are read, and of the half messages outside of the lines the `max_halves` that
-- are due first, so that the statement stays fast after an outage.
SELECT g.name AS producer_group, h.last_failure, count(*) AS halves
FROM producer_group AS g
CROSS JOIN LATERAL (
    SELECT of_line.last_failure
    FROM (VALUES (1), (6)) AS l (line)
    CROSS JOIN LATERAL (
        SELECT f.last_failure
        FROM half_message AS f
        WHERE f.producer_group_id = g.id AND f.line = l.line AND f.discarded_at IS NULL
        LIMIT %(max_halves)s
    ) AS of_line
    UNION ALL
    (
        SELECT a.last_failure
        FROM half_message AS a
        WHERE a.producer_group_id = g.id AND a.line = 0 AND a.discarded_at IS NULL
        ORDER BY a.next_check_at
        LIMIT %(max_halves)s
    )
) AS h
GROUP BY g.name, h.last_failure
ORDER BY g.name, halves DESC
LIMIT %(max_rows)s
