-- Find a group's dead letters by their message ids, the oldest first; the LIMIT, which is never reached, makes the
-- planner read the log first, as in `describe_dead_letters`.
SELECT
    c.queue_offset, c.tags_code, m.segment_id, m.log_offset, m.topic_id, m.queue_id, m.message_id
FROM commit_log AS m
CROSS JOIN LATERAL (
    SELECT d.queue_offset, d.tags_code
    FROM dead_letter AS d
    WHERE d.log_offset = m.log_offset AND d.group_id = %(group_id)s AND d.topic_id = %(topic_id)s
    LIMIT 2147483647
) AS c
WHERE m.message_id = any(%(message_ids)s::uuid [])
ORDER BY c.queue_offset
