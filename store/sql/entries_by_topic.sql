-- Count all the entries that each topic's queues ever held: offsets are dense and begin at 0, so the next offset is the
-- count. Only topics whose names begin with one of `starts` are counted. Topics that have left this cell are counted in
-- their new cell.
-- Row: The number of entries that a topic ever had.
SELECT t.name AS topic, sum(coalesce(last.queue_offset + 1, f.min_offset, 0))::bigint AS entries
FROM topic AS t
INNER JOIN cell_identity AS i ON t.id <> all(i.departed)
CROSS JOIN LATERAL generate_series(0, t.queues - 1) AS s (queue_id)
LEFT JOIN queue_floor AS f ON t.id = f.topic_id AND s.queue_id = f.queue_id
LEFT JOIN LATERAL (
    SELECT c.queue_offset
    FROM consume_queue AS c
    WHERE c.topic_id = t.id AND c.queue_id = s.queue_id
    ORDER BY c.queue_offset DESC
    LIMIT 1
) AS last ON true
WHERE t.name ^@ any(%(starts)s::text [])
GROUP BY t.name
ORDER BY t.name
LIMIT %(max_topics)s
