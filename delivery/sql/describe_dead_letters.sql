-- Describe a group's dead letters by their message ids, without bodies, for a preview. A message that became a dead
-- letter twice has two rows, the newest first. No message has as many letters as the LIMIT, which only makes the
-- planner read the log first.
SELECT c.queue_offset, m.message_id, t.name AS topic, m.keys, c.reconsume_times, c.reason
FROM commit_log AS m
CROSS JOIN LATERAL (
    SELECT d.queue_offset, d.reconsume_times, d.reason
    FROM dead_letter AS d
    WHERE d.log_offset = m.log_offset AND d.group_id = %(group_id)s AND d.topic_id = %(topic_id)s
    LIMIT 2147483647
) AS c
LEFT JOIN topic AS t ON m.topic_id = t.id
WHERE m.message_id = any(%(message_ids)s::uuid [])
ORDER BY c.queue_offset DESC
