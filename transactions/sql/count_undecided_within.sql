-- Count the pending transactions of the producer groups within a namespace, up to a limit, group by group. Discarded
-- transactions wait for an operator and do not count, so that the namespace can begin others.
SELECT count(*) AS undecided
FROM (
    SELECT 1
    FROM producer_group AS g
    CROSS JOIN LATERAL (
        SELECT 1
        FROM half_message AS h
        WHERE h.producer_group_id = g.id AND h.discarded_at IS NULL
        LIMIT %(max_count)s
    ) AS of_group
    WHERE starts_with(g.name, %(name)s || '%%')
    LIMIT %(max_count)s
) AS counted
