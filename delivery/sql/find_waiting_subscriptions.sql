-- Find the subscriptions that may be pushed now and have a message to push: an entry in the topic's queues or the
-- group's retry queue that was not handed out, a held message of an ordered group that is due, or an entry that a fair
-- group has read ahead. Two probes by index per queue and no lock, so an idle subscription costs almost nothing. With
-- late_seconds, only messages count that have waited for late_seconds plus the time-out of a call, in a queue in which
-- the group has not moved meanwhile: a move shows that another process pushes.
SELECT s.id
FROM subscription AS s
INNER JOIN consumer_group AS g ON s.group_name = g.name
INNER JOIN topic AS t ON s.topic_name = t.name
CROSS JOIN LATERAL (
    SELECT now() - CASE
        WHEN %(late_seconds)s::double precision > 0 THEN make_interval(secs => %(late_seconds)s + s.timeout_seconds)
        ELSE interval '0'
    END AS since
) AS late
WHERE
    NOT s.paused AND NOT g.paused AND s.state <> 'disabled' AND coalesce(s.open_until <= now(), true)
    AND strpos(t.permission, 'r') > 0
    AND (
        EXISTS (
            SELECT 1
            FROM (
                SELECT t.id AS topic_id, n.queue_id
                FROM generate_series(0, t.queues - 1) AS n (queue_id)
                UNION ALL
                SELECT again.id AS topic_id, r.queue_id
                FROM retry_queue AS r
                INNER JOIN topic AS again ON again.name = '%%RETRY%%' || g.name
                WHERE r.group_id = g.id AND r.topic_id = t.id
            ) AS q
            LEFT JOIN LATERAL (
                SELECT p.next_offset, p.moved_at
                FROM progress AS p
                WHERE p.reader_id = g.id AND p.topic_id = q.topic_id AND p.queue_id = q.queue_id
                ORDER BY p.move DESC
                LIMIT 1
            ) AS newest ON true
            INNER JOIN LATERAL (
                SELECT c.entered_at
                FROM consume_queue AS c
                WHERE
                    c.topic_id = q.topic_id AND c.queue_id = q.queue_id
                    AND c.queue_offset >= coalesce(newest.next_offset, 0)
                ORDER BY c.queue_offset
                LIMIT 1
            ) AS first ON true
            WHERE first.entered_at <= late.since AND coalesce(newest.moved_at <= late.since, true)
        )
        OR EXISTS (
            SELECT 1
            FROM receipt AS h
            WHERE
                g.ordered AND h.group_id = g.id AND h.origin_topic_id = t.id
                AND h.state IN ('held', 'parked') AND h.expires_at <= late.since
        )
        OR EXISTS (
            SELECT 1
            FROM (
                SELECT w.queue_topic_id, w.queue_id, w.offsets[w.taken + 1] AS queue_offset
                FROM waiting AS w
                WHERE g.fair_by IS NOT NULL AND w.group_id = g.id AND w.topic_id = t.id
                ORDER BY w.fair_key, w.log_segment, w.log_offset
                LIMIT 1
            ) AS w
            CROSS JOIN LATERAL (
                SELECT c.entered_at
                FROM consume_queue AS c
                WHERE c.topic_id = w.queue_topic_id AND c.queue_id = w.queue_id AND c.queue_offset >= w.queue_offset
                ORDER BY c.queue_offset
                LIMIT 1
            ) AS first
            WHERE first.entered_at <= late.since
        )
    )
ORDER BY s.id
LIMIT %(max_subscriptions)s
