-- Find stored messages by their ids, in every segment that is kept, each with its first entry if it has one: what a
-- repeated send is answered with. Each id is probed by index in each partition. A message that was appended again is
-- found in each place, the first one last: that is the one whose answer counts.
SELECT
    m.segment_id, m.log_offset, m.message_id, m.topic_id, m.queue_id, m.transaction_id, m.stored_at, m.body,
    e.queue_id AS entry_queue_id, e.queue_offset
FROM unnest(%(message_ids)s::uuid []) AS asked (message_id)
INNER JOIN commit_log AS m ON asked.message_id = m.message_id
LEFT JOIN LATERAL (
    SELECT c.queue_id, c.queue_offset
    FROM consume_queue AS c
    WHERE c.log_offset = m.log_offset AND c.topic_id = m.topic_id
    ORDER BY c.queue_offset
    LIMIT 1
) AS e ON true
ORDER BY m.log_offset DESC
