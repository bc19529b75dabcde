-- Find the first entry that each of these messages has in a topic, whichever of its copies in the log it points to. A
-- message without one is not visible there.
SELECT DISTINCT ON (m.message_id) m.message_id, c.queue_id, c.queue_offset, c.reconsume_times
FROM unnest(%(message_ids)s::uuid []) AS asked (message_id)
INNER JOIN commit_log AS m ON asked.message_id = m.message_id
INNER JOIN consume_queue AS c ON m.log_offset = c.log_offset
WHERE c.topic_id = %(topic_id)s
ORDER BY m.message_id, c.queue_offset
