-- Find a group's dead letters that were not redriven by their message ids, the oldest first.
SELECT
    c.queue_offset, c.tags_code, m.segment_id, m.log_offset, m.topic_id, m.queue_id, m.message_id
FROM commit_log AS m
INNER JOIN consume_queue AS c ON m.log_offset = c.log_offset AND c.topic_id = %(topic_id)s
WHERE
    m.message_id = any(%(message_ids)s::uuid [])
    AND NOT EXISTS (
        SELECT 1 FROM redrive AS r WHERE r.group_id = %(group_id)s AND r.queue_offset = c.queue_offset
    )
ORDER BY c.queue_offset
