-- Find the lag of readers in each queue of each topic that they have begun to read, and since when the next entry is
-- visible. A loose index scan goes from topic to topic along the key of progress. Each queue takes one index probe for
-- the newest move, one for each bound and one for the next entry. A queue without a move was added later, and is read
-- from its first entry.
-- Row: A reader's next offset in a queue, the queue's bounds, and the lag, the number of entries between.
-- Null: moved_at, next_entered_at.
WITH RECURSIVE topics_read AS (
    SELECT
        g.reader_id,
        (SELECT p.topic_id FROM progress AS p WHERE p.reader_id = g.reader_id ORDER BY p.topic_id LIMIT 1) AS topic_id
    FROM unnest(%(reader_ids)s::integer []) AS g (reader_id)
    UNION ALL
    SELECT
        r.reader_id,
        (
            SELECT p.topic_id
            FROM progress AS p
            WHERE p.reader_id = r.reader_id AND p.topic_id > r.topic_id
            ORDER BY p.topic_id
            LIMIT 1
        )
    FROM topics_read AS r
    WHERE r.topic_id IS NOT NULL
)

SELECT
    q.reader_id, q.topic_id, q.topic, q.queue_id, q.min_offset, q.max_offset, q.moved_at, next.entered_at AS next_entered_at,
    greatest(q.next_offset, q.min_offset) AS next_offset,
    q.max_offset - greatest(q.next_offset, q.min_offset) AS lag
FROM (
    SELECT
        r.reader_id, t.id AS topic_id, t.name AS topic, s.queue_id, newest.moved_at, coalesce(f.min_offset, 0) AS min_offset,
        coalesce(last.queue_offset + 1, f.min_offset, 0) AS max_offset,
        coalesce(newest.next_offset, f.min_offset, 0) AS next_offset
    FROM topics_read AS r
    INNER JOIN topic AS t ON r.topic_id = t.id
    CROSS JOIN LATERAL generate_series(0, t.queues - 1) AS s (queue_id)
    LEFT JOIN queue_floor AS f ON t.id = f.topic_id AND s.queue_id = f.queue_id
    LEFT JOIN LATERAL (
        SELECT c.queue_offset
        FROM consume_queue AS c
        WHERE c.topic_id = t.id AND c.queue_id = s.queue_id
        ORDER BY c.queue_offset DESC
        LIMIT 1
    ) AS last ON true
    LEFT JOIN LATERAL (
        SELECT p.next_offset, p.moved_at
        FROM progress AS p
        WHERE p.reader_id = r.reader_id AND p.topic_id = t.id AND p.queue_id = s.queue_id
        ORDER BY p.move DESC
        LIMIT 1
    ) AS newest ON true
    ORDER BY r.reader_id, t.name, s.queue_id
    LIMIT %(max_queues)s
) AS q
LEFT JOIN LATERAL (
    SELECT c.entered_at
    FROM consume_queue AS c
    WHERE
        c.topic_id = q.topic_id AND c.queue_id = q.queue_id
        AND c.queue_offset >= greatest(q.next_offset, q.min_offset)
    ORDER BY c.queue_offset
    LIMIT 1
) AS next ON true
ORDER BY q.reader_id, q.topic, q.queue_id
