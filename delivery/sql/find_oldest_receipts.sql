-- For each queue, find when the first entry became visible that is in a bundle of the group, or for which the group has
-- a receipt (in flight, held or parked). Three probes by index per queue; at most 64 bundles share the lowest places.
SELECT q.group_id, q.topic_id, q.queue_id, first.entered_at
FROM unnest(
    %(group_id)s::integer [], %(topic_id)s::integer [], %(queue_id)s::integer []
) AS q (group_id, topic_id, queue_id)
CROSS JOIN LATERAL (
    SELECT least(
        (
            SELECT r.queue_offset
            FROM receipt AS r
            WHERE r.group_id = q.group_id AND r.topic_id = q.topic_id AND r.queue_id = q.queue_id
            ORDER BY r.queue_offset
            LIMIT 1
        ),
        (
            SELECT min(l.first_offset + position('1' IN reverse(l.unsettled::bit(64)::text)) - 1)
            FROM (
                SELECT b.first_offset, b.unsettled
                FROM bundle AS b
                WHERE b.group_id = q.group_id AND b.topic_id = q.topic_id AND b.queue_id = q.queue_id
                ORDER BY b.first_offset
                LIMIT 64
            ) AS l
        )
    ) AS queue_offset
) AS held
CROSS JOIN LATERAL (
    SELECT c.entered_at
    FROM consume_queue AS c
    WHERE c.topic_id = q.topic_id AND c.queue_id = q.queue_id AND c.queue_offset >= held.queue_offset
    ORDER BY c.queue_offset
    LIMIT 1
) AS first
