-- Read messages by their log positions, each with the first bytes of its body and the size of the whole body. A body
-- may have 4 MiB, so the database sends only the bytes that are shown.
-- Row: A stored message with the first bytes of its body, `beginning`. `size` is the size of the whole body in bytes.
-- Null: born_at, tags, keys, sharding_key, traceparent, properties, topic.
SELECT
    m.segment_id, m.log_offset, m.message_id, m.queue_id, m.stored_at, m.born_at, m.tags, m.keys, m.sharding_key,
    m.traceparent, m.properties, m.topic_id, t.name AS topic,
    substring(m.body FROM 1 FOR %(max_bytes)s::integer) AS beginning, octet_length(m.body) AS size,
    m.body_form
FROM commit_log AS m
LEFT JOIN topic AS t ON m.topic_id = t.id
WHERE m.log_offset = any(%(log_offset)s::bigint []) AND m.segment_id = any(%(segment_id)s::integer [])
