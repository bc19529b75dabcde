-- Find a reader's position in each queue: its newest move, by one index probe, with the bounds of the queue. If there
-- is no move, another probe finds whether the reader has begun to read the topic: if so, the queue was added later.
-- Row: A reader's newest move in a queue (NULL before its first), and the queue's bounds.
-- Null: next_offset, move.
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
    ) AS max_offset,
    CASE
        WHEN newest.move IS NULL
            THEN EXISTS (SELECT 1 FROM progress AS o WHERE o.reader_id = %(reader_id)s AND o.topic_id = q.topic_id)
        ELSE true
    END AS begun
FROM unnest(%(topic_id)s::integer [], %(queue_id)s::integer []) AS q (topic_id, queue_id)
LEFT JOIN queue_floor AS f ON q.topic_id = f.topic_id AND q.queue_id = f.queue_id
LEFT JOIN LATERAL (
    SELECT p.next_offset, p.move
    FROM progress AS p
    WHERE p.reader_id = %(reader_id)s AND p.topic_id = q.topic_id AND p.queue_id = q.queue_id
    ORDER BY p.move DESC
    LIMIT 1
) AS newest ON true
