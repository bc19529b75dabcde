-- The bounds of a topic's queues: the lowest offset kept and the next one to be written, each by one index probe.
SELECT
    q.queue_id,
    coalesce(f.min_offset, 0) AS min_offset,
    coalesce(newest.queue_offset + 1, f.min_offset, 0) AS max_offset,
    newest.entered_at AS last_stored_at
FROM generate_series(0, %(queues)s - 1) AS q (queue_id)
LEFT JOIN queue_floor AS f ON f.topic_id = %(topic_id)s AND q.queue_id = f.queue_id
LEFT JOIN LATERAL (
    SELECT c.queue_offset, c.entered_at
    FROM consume_queue AS c
    WHERE c.topic_id = %(topic_id)s AND c.queue_id = q.queue_id
    ORDER BY c.queue_offset DESC
    LIMIT 1
) AS newest ON true
ORDER BY q.queue_id
