-- Find the head of every level's queue: the first entry at or after the scheduler's next offset, by two index probes a
-- level.
-- Row: The entry of a level's queue that is released next, and the database's time.
SELECT q.queue_id, head.queue_offset, head.tags_code AS due_ms, head.entered_at, clock_timestamp() AS now
FROM topic AS t
CROSS JOIN LATERAL generate_series(0, t.queues - 1) AS q (queue_id)
CROSS JOIN LATERAL (
    SELECT c.queue_offset, c.tags_code, c.entered_at
    FROM consume_queue AS c
    WHERE
        c.topic_id = t.id AND c.queue_id = q.queue_id
        AND c.queue_offset >= coalesce(
            (
                SELECT p.next_offset
                FROM progress AS p
                WHERE p.reader_id = %(scheduler)s AND p.topic_id = t.id AND p.queue_id = q.queue_id
                ORDER BY p.move DESC
                LIMIT 1
            ),
            0
        )
    ORDER BY c.queue_offset
    LIMIT 1
) AS head
WHERE t.name = %(schedule_topic)s
