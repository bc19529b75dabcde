-- Find the closed segments with something left to drop (their queues, or the log of the one before), the oldest first,
-- and whether their time is over: closed for longer than the retention, and than the reserved time of any topic with
-- entries in them.
SELECT
    s.id, before.id AS before_id,
    s.closed_at < now() - make_interval(secs => %(reserved_seconds)s)
    AND NOT EXISTS (
        SELECT 1
        FROM topic AS t
        WHERE
            s.closed_at >= now() - make_interval(hours => t.reserved_hours)
            AND EXISTS (SELECT 1 FROM consume_queue AS c WHERE c.segment_id = s.id AND c.topic_id = t.id)
    ) AS is_over
FROM segment AS s
LEFT JOIN segment AS before ON s.id - 1 = before.id AND before.state = 'closed'
WHERE s.state = 'closed' AND (before.id IS NOT NULL OR to_regclass('consume_queue_' || s.id) IS NOT NULL)
ORDER BY s.id
