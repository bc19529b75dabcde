-- Describe a group's dead letters that were not redriven, by their message ids, without their bodies: what a preview shows.
-- A message that died twice has two rows, the newest first.
SELECT c.queue_offset, m.message_id, t.name AS topic, m.keys, c.reconsume_times, k.reason
FROM commit_log AS m
CROSS JOIN LATERAL (
    SELECT e.queue_offset, e.reconsume_times
    FROM consume_queue AS e
    WHERE e.log_offset = m.log_offset AND e.topic_id = %(topic_id)s
    LIMIT 2147483647
) AS c
LEFT JOIN topic AS t ON m.topic_id = t.id
LEFT JOIN LATERAL (
    SELECT n.reason
    FROM nack AS n
    WHERE n.log_offset = m.log_offset AND n.group_id = %(group_id)s
    ORDER BY n.nacked_at DESC
    LIMIT 1
) AS k ON true
WHERE
    m.message_id = any(%(message_ids)s::uuid [])
    AND NOT EXISTS (
        SELECT 1 FROM redrive AS r WHERE r.group_id = %(group_id)s AND r.queue_offset = c.queue_offset
    )
ORDER BY c.queue_offset DESC
