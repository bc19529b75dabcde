-- Count the undecided transactions of each producer group by their state, with the age of the oldest in seconds. Each
-- group's are read by its index, up to a limit.
SELECT
    g.name AS producer_group,
    CASE WHEN h.discarded_at IS NULL THEN 'PREPARED' ELSE 'DISCARDED' END AS state,
    count(*) AS halves,
    extract(EPOCH FROM now() - min(h.stored_at))::double precision AS oldest_seconds
FROM (SELECT p.id, p.name FROM producer_group AS p ORDER BY p.name LIMIT %(max_groups)s) AS g
CROSS JOIN LATERAL (
    SELECT m.discarded_at, m.stored_at
    FROM half_message AS m
    WHERE m.producer_group_id = g.id
    ORDER BY m.stored_at
    LIMIT %(max_count)s
) AS h
GROUP BY 1, 2
ORDER BY 1, 2
