-- Find a group's dead letters that were not redriven by their message ids, the oldest first.
SELECT
    c.queue_offset, c.tags_code, m.segment_id, m.log_offset, m.topic_id, m.queue_id, m.message_id
FROM commit_log AS m
CROSS JOIN LATERAL (
    SELECT e.queue_offset, e.tags_code
    FROM consume_queue AS e
    WHERE e.log_offset = m.log_offset AND e.topic_id = %(topic_id)s
    LIMIT 2147483647
) AS c
WHERE
    m.message_id = any(%(message_ids)s::uuid [])
    AND NOT EXISTS (
        SELECT 1 FROM redrive AS r WHERE r.group_id = %(group_id)s AND r.queue_offset = c.queue_offset
    )
ORDER BY c.queue_offset
