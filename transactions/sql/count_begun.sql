-- Count the undecided transactions that were begun since a time, each group's by its index, up to a limit.
SELECT count(*) AS begun
FROM (
    SELECT 1
    FROM producer_group AS g
    INNER JOIN half_message AS h ON g.id = h.producer_group_id
    WHERE h.stored_at >= %(since)s
    LIMIT %(max_count)s
) AS counted
