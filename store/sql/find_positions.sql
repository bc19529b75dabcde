-- Find where a reader stands in each queue: its newest move, by one index probe, with the bounds of the queue.
SELECT
    q.topic_id, q.queue_id, newest.next_offset, newest.move, coalesce(f.min_offset, 0) AS min_offset,
    coalesce(
        (
            SELECT c.queue_offset + 1
            FROM consume_queue AS c
            WHERE c.topic_id = q.topic_id AND c.queue_id = q.queue_id
            ORDER BY c.queue_offset DESC
            LIMIT 1
        ),
        f.min_offset,
        0
    ) AS max_offset
FROM unnest(%(topic_id)s::integer [], %(queue_id)s::integer []) AS q (topic_id, queue_id)
LEFT JOIN queue_floor AS f ON q.topic_id = f.topic_id AND q.queue_id = f.queue_id
LEFT JOIN LATERAL (
    SELECT p.next_offset, p.move
    FROM progress AS p
    WHERE p.reader_id = %(reader_id)s AND p.topic_id = q.topic_id AND p.queue_id = q.queue_id
    ORDER BY p.move DESC
    LIMIT 1
) AS newest ON true
