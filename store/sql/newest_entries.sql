-- Find the newest entries of a queue below an offset, the newest first, by two index probes each: one for the entry,
-- one for the head of its message, which is null if retention has dropped the segment of the message.
-- Row: An entry with the head of its message; fields from `message_id` on are None if the message was dropped.
-- Null: message_id, transaction_id, tags, keys, stored_at.
SELECT
    c.queue_offset, c.reconsume_times AS counted, c.entered_at, m.message_id, m.transaction_id, m.tags, m.keys, m.stored_at
FROM (
    SELECT e.queue_offset, e.reconsume_times, e.entered_at, e.log_segment, e.log_offset
    FROM consume_queue AS e
    WHERE e.topic_id = %(topic_id)s AND e.queue_id = %(queue_id)s AND e.queue_offset < %(below)s
    ORDER BY e.queue_offset DESC
    LIMIT %(max_rows)s
) AS c
LEFT JOIN LATERAL (
    SELECT l.message_id, l.transaction_id, l.tags, l.keys, l.stored_at
    FROM commit_log AS l
    WHERE l.segment_id = c.log_segment AND l.log_offset = c.log_offset
    LIMIT 1
) AS m ON true
ORDER BY c.queue_offset DESC
