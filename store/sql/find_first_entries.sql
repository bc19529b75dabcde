-- Find the first entry of each of these messages in a topic; the entry may point to any log position of the message. A
-- message without an entry is not visible in the topic.
-- Row: The first entry of a message in a topic.
SELECT DISTINCT ON (m.message_id) m.message_id, e.queue_id, e.queue_offset, e.reconsume_times
FROM commit_log AS m
CROSS JOIN LATERAL (
    SELECT c.queue_id, c.queue_offset, c.reconsume_times
    FROM consume_queue AS c
    WHERE c.log_offset = m.log_offset AND c.topic_id = %(topic_id)s
    ORDER BY c.queue_offset
    LIMIT 1
) AS e
WHERE m.message_id = any(%(message_ids)s::uuid [])
ORDER BY m.message_id, e.queue_offset
