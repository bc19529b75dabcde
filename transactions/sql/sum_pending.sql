-- Sum the pending transactions of each producer group by the last failure of their checks: of each group the `max_halves` that
-- are due first, by the index of due checks, so that no outage makes it read them all.
SELECT g.name AS producer_group, h.last_failure, count(*) AS halves
FROM producer_group AS g
CROSS JOIN LATERAL (
    SELECT d.last_failure
    FROM half_message AS d
    WHERE d.producer_group_id = g.id AND d.discarded_at IS NULL
    ORDER BY d.next_check_at
    LIMIT %(max_halves)s
) AS h
GROUP BY g.name, h.last_failure
ORDER BY g.name, halves DESC
LIMIT %(max_rows)s
