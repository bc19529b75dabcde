-- Find stored messages by their ids in every segment that is kept, each with its first entry if it has one: the answer
-- to a repeated send. Each id is probed by index in each partition before the rows are sorted; otherwise a plan that
-- was made while a partition was empty would read the whole log in sorted order. A message that was appended again is
-- found at each log position, the first position last, because the answer names the first position.
-- Row: A stored message with this id, and its first entry, whose columns are NULL while there is none.
-- Null: transaction_id, entry_queue_id, queue_offset.
WITH found AS MATERIALIZED (
    SELECT
        m.segment_id, m.log_offset, m.message_id, m.topic_id, m.queue_id, m.transaction_id, m.stored_at, m.body
    FROM commit_log AS m
    WHERE m.message_id = any(%(message_ids)s::uuid [])
)

SELECT
    m.segment_id, m.log_offset, m.message_id, m.topic_id, m.queue_id, m.transaction_id, m.stored_at, m.body,
    e.queue_id AS entry_queue_id, e.queue_offset
FROM found AS m
LEFT JOIN LATERAL (
    SELECT c.queue_id, c.queue_offset
    FROM consume_queue AS c
    WHERE c.log_offset = m.log_offset AND c.topic_id = m.topic_id
    ORDER BY c.queue_offset
    LIMIT 1
) AS e ON true
ORDER BY m.log_offset DESC
