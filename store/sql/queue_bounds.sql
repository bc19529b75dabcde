-- Read the bounds of queues, in the given order: the lowest offset that is kept and the next offset to be written, each
-- by one index probe, and the time of the newest entry.
SELECT
    q.topic_id, q.queue_id,
    coalesce(f.min_offset, 0) AS min_offset,
    coalesce(newest.queue_offset + 1, f.min_offset, 0) AS max_offset,
    newest.entered_at AS last_stored_at
FROM unnest(%(topic_id)s::integer [], %(queue_id)s::integer []) WITH ORDINALITY AS q (topic_id, queue_id, number)
LEFT JOIN queue_floor AS f ON q.topic_id = f.topic_id AND q.queue_id = f.queue_id
LEFT JOIN LATERAL (
    SELECT c.queue_offset, c.entered_at
    FROM consume_queue AS c
    WHERE c.topic_id = q.topic_id AND c.queue_id = q.queue_id
    ORDER BY c.queue_offset DESC
    LIMIT 1
) AS newest ON true
ORDER BY q.number
