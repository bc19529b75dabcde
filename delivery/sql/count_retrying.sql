-- Count retrying messages by group and topic (NULL for a deleted topic), with the time since which the oldest message
-- waits and the time of the next attempt. Reads at most max_waiting rows each of: held receipts, by the index of held
-- and parked receipts; timers of retries, by their index; entries that wait in each delay level. A held message waits
-- since its last delivery; a timer's id begins with the milliseconds of its creation.
WITH place AS MATERIALIZED (
    SELECT q.group_id, q.topic_id, q.queue_id, t.id AS retry_topic_id
    FROM retry_queue AS q
    INNER JOIN consumer_group AS g ON q.group_id = g.id
    INNER JOIN topic AS t ON t.name = '%%RETRY%%' || g.name
    WHERE q.group_id = any(%(group_ids)s::integer [])
),

delayed AS MATERIALIZED (
    SELECT
        t.topic_id, t.queue_id, count(*) AS messages,
        to_timestamp(('x' || left(replace(min(t.id::text), '-', ''), 12))::bit(48)::bigint / 1000.0) AS oldest_at,
        min(t.due_at) AS next_at
    FROM (
        SELECT r.id, r.topic_id, r.queue_id, r.due_at
        FROM timer AS r
        WHERE r.topic_id = any(array(SELECT DISTINCT p.retry_topic_id FROM place AS p)) AND r.reconsume_times > 0
        LIMIT %(max_waiting)s
    ) AS t
    GROUP BY t.topic_id, t.queue_id
    UNION ALL
    SELECT
        e.real_topic_id, e.real_queue_id, count(*), min(e.entered_at),
        timestamptz 'epoch' + min(e.tags_code) * interval '1 millisecond'
    FROM topic AS s
    CROSS JOIN LATERAL generate_series(0, s.queues - 1) AS l (queue_id)
    LEFT JOIN LATERAL (
        SELECT p.next_offset
        FROM progress AS p
        WHERE p.reader_id = %(scheduler)s AND p.topic_id = s.id AND p.queue_id = l.queue_id
        ORDER BY p.move DESC
        LIMIT 1
    ) AS newest ON true
    CROSS JOIN LATERAL (
        SELECT c.real_topic_id, c.real_queue_id, c.entered_at, c.tags_code
        FROM consume_queue AS c
        WHERE c.topic_id = s.id AND c.queue_id = l.queue_id AND c.queue_offset >= coalesce(newest.next_offset, 0)
        ORDER BY c.queue_offset
        LIMIT %(max_waiting)s
    ) AS e
    WHERE
        s.name = %(schedule_topic)s
        AND e.real_topic_id = any(array(SELECT DISTINCT p.retry_topic_id FROM place AS p))
    GROUP BY e.real_topic_id, e.real_queue_id
)

SELECT
    w.group_id, w.topic_id, t.name AS topic, sum(w.messages)::bigint AS messages, min(w.oldest_at) AS oldest_at,
    min(w.next_at) AS next_at
FROM (
    SELECT p.group_id, p.topic_id, d.messages, d.oldest_at, d.next_at
    FROM delayed AS d
    INNER JOIN place AS p ON d.topic_id = p.retry_topic_id AND d.queue_id = p.queue_id
    UNION ALL
    SELECT h.group_id, h.topic_id, count(*), min(h.received_at), min(h.expires_at)
    FROM (
        SELECT r.group_id, r.origin_topic_id AS topic_id, r.received_at, r.expires_at
        FROM receipt AS r
        WHERE
            r.group_id = any(%(group_ids)s::integer []) AND r.state IN ('held', 'parked') AND r.state = 'held'
        LIMIT %(max_waiting)s
    ) AS h
    GROUP BY h.group_id, h.topic_id
) AS w
LEFT JOIN topic AS t ON w.topic_id = t.id
GROUP BY w.group_id, w.topic_id, t.name
