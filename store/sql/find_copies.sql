-- Find where a message lies in the log, by its id: once, and again in later segments if something needed it for longer than
-- its first segment. The newest first; each partition is probed by index, before anything is put in order.
-- The length of a body is read from its head: no body is read here.
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
