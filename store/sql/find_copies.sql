-- Find the log positions of a message by its id, the newest first: usually one, and more in later segments if a row
-- needed the message for longer than its first segment existed. Each partition is probed by index before the rows are
-- sorted. The length of a body is stored at its beginning, so no body is read.
-- Row: One log position of a message. A message that was appended again has several.
-- Null: transaction_id, producer_group_id.
WITH found AS MATERIALIZED (
    SELECT
        m.segment_id, m.log_offset, m.topic_id, m.queue_id, m.transaction_id, m.producer_group_id, m.stored_at,
        octet_length(m.body) AS body_bytes
    FROM commit_log AS m
    WHERE m.message_id = %(message_id)s
)

SELECT
    m.segment_id, m.log_offset, m.topic_id, m.queue_id, m.transaction_id, m.producer_group_id, m.stored_at, m.body_bytes
FROM found AS m
ORDER BY m.log_offset DESC
LIMIT %(max_copies)s
