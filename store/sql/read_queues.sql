-- Read the entries of several queues with their messages, each queue from its own offset on, in order.
SELECT
    q.topic_id AS entry_topic_id, q.queue_id AS entry_queue_id, e.queue_offset, e.tags_code, e.reconsume_times,
    e.entered_at, m.segment_id, m.log_offset, m.stored_at, m.born_at, m.topic_id, m.queue_id, m.message_id,
    m.transaction_id, m.tags, m.keys, m.sharding_key, m.traceparent, m.properties, m.body, m.body_form
FROM unnest(
    %(topic_id)s::integer [], %(queue_id)s::integer [], %(from_offset)s::bigint [], %(max_entries)s::integer []
) AS q (topic_id, queue_id, from_offset, max_entries)
CROSS JOIN LATERAL (
    SELECT c.queue_offset, c.tags_code, c.reconsume_times, c.entered_at, c.log_segment, c.log_offset
    FROM consume_queue AS c
    WHERE c.topic_id = q.topic_id AND c.queue_id = q.queue_id AND c.queue_offset >= q.from_offset
    ORDER BY c.queue_offset
    LIMIT q.max_entries
) AS e
INNER JOIN commit_log AS m ON e.log_segment = m.segment_id AND e.log_offset = m.log_offset
ORDER BY q.topic_id, q.queue_id, e.queue_offset
