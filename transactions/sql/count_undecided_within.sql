-- Count the pending transactions of the producer groups within a namespace, up to a limit. Discarded ones wait for an
-- operator, and must not keep the namespace from beginning others.
SELECT count(*) AS undecided
FROM (
    SELECT 1
    FROM producer_group AS g
    INNER JOIN half_message AS h ON g.id = h.producer_group_id
    WHERE starts_with(g.name, %(name)s || '%%') AND h.discarded_at IS NULL
    LIMIT %(max_count)s
) AS counted
