-- Find the first entry that each of these messages has in a topic, whichever of its copies in the log it points to. A
-- message without one is not visible there.
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
