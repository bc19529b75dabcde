-- Find the lag of groups in topics that were deleted and created again after the groups had read them: the new topic
-- has another id, and the group was handed nothing of it. The statement reads the groups' retry queues once, then
-- probes each queue twice. A group that starts at the latest entry has no lag in such a topic: it is handed only
-- entries that come after its first receive.
SELECT
    a.group_id AS reader_id, a.topic_id, a.topic, q.queue_id, q.min_offset, q.max_offset, NULL::timestamptz AS moved_at,
    next.entered_at AS next_entered_at, q.min_offset AS next_offset, q.max_offset - q.min_offset AS lag
FROM (
    SELECT DISTINCT r.group_id, t.id AS topic_id, t.name AS topic, t.queues
    FROM retry_queue AS r
    INNER JOIN consumer_group AS g ON r.group_id = g.id
    INNER JOIN topic AS t ON r.topic_name = t.name AND r.topic_id <> t.id
    WHERE
        r.group_id = any(%(reader_ids)s::integer []) AND g.start_at = 'earliest'
        AND NOT EXISTS (SELECT FROM progress AS p WHERE p.reader_id = r.group_id AND p.topic_id = t.id)
    LIMIT %(max_queues)s
) AS a
CROSS JOIN LATERAL (
    SELECT
        s.queue_id, coalesce(f.min_offset, 0) AS min_offset,
        coalesce(
            (
                SELECT c.queue_offset + 1
                FROM consume_queue AS c
                WHERE c.topic_id = a.topic_id AND c.queue_id = s.queue_id
                ORDER BY c.queue_offset DESC
                LIMIT 1
            ),
            f.min_offset, 0
        ) AS max_offset
    FROM generate_series(0, a.queues - 1) AS s (queue_id)
    LEFT JOIN queue_floor AS f ON f.topic_id = a.topic_id AND f.queue_id = s.queue_id
) AS q
LEFT JOIN LATERAL (
    SELECT c.entered_at
    FROM consume_queue AS c
    WHERE c.topic_id = a.topic_id AND c.queue_id = q.queue_id AND c.queue_offset >= q.min_offset
    ORDER BY c.queue_offset
    LIMIT 1
) AS next ON true
ORDER BY a.group_id, a.topic, q.queue_id
