-- Read a queue's entries with their messages from an offset on, in order. Offsets are dense and become visible in order,
-- so that what is missing before the last row read will never appear.
SELECT
    e.queue_id, e.queue_offset, e.tags_code, e.reconsume_times, e.entered_at, m.segment_id, m.log_offset, m.stored_at,
    m.born_at, m.topic_id, m.message_id, m.transaction_id, m.tags, m.keys, m.sharding_key, m.traceparent, m.properties,
    m.body, m.body_form
FROM (
    SELECT c.queue_id, c.queue_offset, c.tags_code, c.reconsume_times, c.entered_at, c.log_segment, c.log_offset
    FROM consume_queue AS c
    WHERE c.topic_id = %(topic_id)s AND c.queue_id = %(queue_id)s AND c.queue_offset >= %(from_offset)s
    ORDER BY c.queue_offset
    LIMIT %(max_entries)s
) AS e
INNER JOIN commit_log AS m ON e.log_segment = m.segment_id AND e.log_offset = m.log_offset
ORDER BY e.queue_offset
