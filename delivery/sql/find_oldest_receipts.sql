-- Find when the first entry became visible for which a group has a receipt (in flight, held or parked), for each queue.
-- Two probes by index per queue.
SELECT q.group_id, q.topic_id, q.queue_id, first.entered_at
FROM unnest(
    %(group_id)s::integer [], %(topic_id)s::integer [], %(queue_id)s::integer []
) AS q (group_id, topic_id, queue_id)
CROSS JOIN LATERAL (
    SELECT r.queue_offset
    FROM receipt AS r
    WHERE r.group_id = q.group_id AND r.topic_id = q.topic_id AND r.queue_id = q.queue_id
    ORDER BY r.queue_offset
    LIMIT 1
) AS held
CROSS JOIN LATERAL (
    SELECT c.entered_at
    FROM consume_queue AS c
    WHERE c.topic_id = q.topic_id AND c.queue_id = q.queue_id AND c.queue_offset >= held.queue_offset
    ORDER BY c.queue_offset
    LIMIT 1
) AS first
