-- Read messages by their places in the commit log. A log offset is in one segment only; the segments spare the others'
-- partitions.
SELECT
    m.log_offset, m.segment_id, m.stored_at, m.born_at, m.topic_id, m.queue_id, m.message_id, m.transaction_id, m.tags,
    m.keys, m.sharding_key, m.traceparent, m.properties, m.body, m.body_form
FROM commit_log AS m
WHERE m.log_offset = any(%(log_offset)s::bigint []) AND m.segment_id = any(%(segment_id)s::integer [])
