-- Find the closed segments that are not completely dropped (their queues, or the log of the segment before them), the
-- oldest first, and whether the time of each is over: they were closed for longer than the retention, and than the
-- reserved time of each topic with entries in them. A segment awaits an export if no export holds it whole; only
-- exports to `target` count, if it is given.
-- Row: A closed segment that is not dropped completely. `before_id` is the closed segment before it. `awaits_export`:
--    retention waits for exports, and no export holds the segment whole.
-- Null: before_id.
SELECT
    s.id, before.id AS before_id,
    s.closed_at < now() - make_interval(secs => %(reserved_seconds)s)
    AND NOT EXISTS (
        SELECT 1
        FROM topic AS t
        WHERE
            s.closed_at >= now() - make_interval(hours => t.reserved_hours)
            AND EXISTS (SELECT 1 FROM consume_queue AS c WHERE c.segment_id = s.id AND c.topic_id = t.id)
    ) AS is_over,
    %(until_exported)s AND s.unexported_at IS NULL AND NOT EXISTS (
        SELECT 1
        FROM export AS e
        WHERE e.segment_id >= s.id AND (e.target = %(target)s OR %(target)s = '')
    ) AS awaits_export
FROM segment AS s
LEFT JOIN segment AS before ON s.id - 1 = before.id AND before.state = 'closed'
WHERE s.state = 'closed' AND (before.id IS NOT NULL OR to_regclass('consume_queue_' || s.id) IS NOT NULL)
ORDER BY s.id
