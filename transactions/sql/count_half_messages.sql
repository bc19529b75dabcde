-- Count the half messages of undecided transactions by their topic and the state of their transaction; each message of
-- a transaction counts. Reads the half messages from end to end, as count_waiting does. Only topics whose names begin
-- with one of `starts` are counted; all names begin with the empty text.
-- Row: The number of half messages of a topic whose transactions are in one state.
SELECT
    coalesce(t.name, '(deleted topic ' || w.topic_id || ')') AS topic,
    CASE WHEN w.prepared THEN 'PREPARED' ELSE 'DISCARDED' END AS state,
    w.messages
FROM (
    SELECT m.topic_id, h.discarded_at IS NULL AS prepared, count(*) AS messages
    FROM half_message AS h
    CROSS JOIN LATERAL unnest(coalesce(h.topic_ids, ARRAY[h.topic_id])) AS m (topic_id)
    GROUP BY 1, 2
) AS w
LEFT JOIN topic AS t ON w.topic_id = t.id
WHERE coalesce(t.name, '') ^@ any(%(starts)s::text [])
ORDER BY 1, w.prepared
LIMIT %(max_rows)s
