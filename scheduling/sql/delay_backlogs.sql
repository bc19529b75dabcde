-- Find the backlog of each delay level: the entries of its queue from the offset that the scheduler reads next, `low`,
-- to before the offset that is written next, `high`. A recalled entry counts until the release passes it.
-- Row: A level's queue: the next offset of the release, `low`, and the offset after the last entry, `high`.
SELECT
    w.topic_id, w.queue_id, w.low, w.high, greatest(w.high - w.low, 0) AS backlog
FROM (
    SELECT
        s.queue_id, t.id AS topic_id,
        greatest(coalesce(newest.next_offset, 0), coalesce(f.min_offset, 0)) AS low,
        coalesce(last.queue_offset + 1, 0) AS high
    FROM topic AS t
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
        SELECT p.next_offset
        FROM progress AS p
        WHERE p.reader_id = %(scheduler)s AND p.topic_id = t.id AND p.queue_id = s.queue_id
        ORDER BY p.move DESC
        LIMIT 1
    ) AS newest ON true
    WHERE t.name = %(schedule_topic)s
) AS w
ORDER BY w.queue_id
