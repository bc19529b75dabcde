-- Count the undecided transactions of each producer group by their state, with the age of the oldest in seconds. Reads
-- the half messages from end to end: they are small, and a read by the groups' index took five times as long. Only
-- groups whose names begin with one of `starts` are counted; all names begin with the empty text.
-- Row: The number of undecided transactions of a producer group in one state, and the age of the oldest.
SELECT
    coalesce(g.name, '(deleted producer group ' || w.producer_group_id || ')') AS producer_group,
    CASE WHEN w.prepared THEN 'PREPARED' ELSE 'DISCARDED' END AS state,
    w.halves,
    extract(EPOCH FROM now() - w.oldest_at)::double precision AS oldest_seconds
FROM (
    SELECT h.producer_group_id, h.discarded_at IS NULL AS prepared, count(*) AS halves, min(h.stored_at) AS oldest_at
    FROM half_message AS h
    GROUP BY 1, 2
) AS w
LEFT JOIN producer_group AS g ON w.producer_group_id = g.id
WHERE coalesce(g.name, '') ^@ any(%(starts)s::text [])
ORDER BY 1, w.prepared
LIMIT %(max_rows)s
