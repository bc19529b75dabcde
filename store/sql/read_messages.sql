-- Read messages by their places in the commit log.
SELECT
    m.log_offset, m.segment_id, m.stored_at, m.born_at, m.topic_id, m.queue_id, m.message_id, m.transaction_id, m.tags,
    m.keys, m.sharding_key, m.traceparent, m.properties, m.body, m.body_form
FROM unnest(%(segment_id)s::integer [], %(log_offset)s::bigint []) AS asked (segment_id, log_offset)
INNER JOIN commit_log AS m ON asked.segment_id = m.segment_id AND asked.log_offset = m.log_offset
