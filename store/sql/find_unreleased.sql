-- Find a delay level whose queue has entries in a segment that the scheduler has not released yet. The scheduler never
-- goes back, so once no level is found, none is found later.
SELECT q.queue_id
FROM topic AS t
CROSS JOIN LATERAL generate_series(0, t.queues - 1) AS q (queue_id)
CROSS JOIN LATERAL (
    SELECT c.queue_offset
    FROM consume_queue AS c
    WHERE c.segment_id = %(segment_id)s AND c.topic_id = t.id AND c.queue_id = q.queue_id
    ORDER BY c.queue_offset DESC
    LIMIT 1
) AS newest
WHERE
    t.name = %(schedule_topic)s
    AND newest.queue_offset >= coalesce(
        (
            SELECT p.next_offset
            FROM progress AS p
            WHERE p.reader_id = 0 AND p.topic_id = t.id AND p.queue_id = q.queue_id
            ORDER BY p.move DESC
            LIMIT 1
        ),
        0
    )
LIMIT 1
