-- Count the undecided transactions that were begun since a time, per group by its index, line by line, up to a limit.
-- Only groups whose names begin with one of `starts` are counted; all names begin with the empty text.
SELECT count(*) AS begun
FROM (
    SELECT 1
    FROM producer_group AS g
    CROSS JOIN (VALUES (0), (1), (6)) AS l (line)
    CROSS JOIN LATERAL (
        SELECT 1
        FROM half_message AS h
        WHERE h.producer_group_id = g.id AND h.line = l.line AND h.stored_at >= %(since)s
        LIMIT %(max_count)s
    ) AS of_line
    WHERE g.name ^@ any(%(starts)s::text [])
    LIMIT %(max_count)s
) AS counted
