-- Read the commit log for Spark, which adds the closed range of each slice. `weight` is about the memory that a row
-- takes: heavy rows are fetched in smaller steps. The length of a body is known without reading the body.
SELECT
    segment_id, log_offset, message_id, topic_id, queue_id, producer_group_id, transaction_id, tags, keys, sharding_key,
    traceparent, properties, body, body_form, born_at, stored_at,
    octet_length(body) + coalesce(octet_length(properties), 0) + coalesce(octet_length(array_to_string(keys, ' ')), 0)
        AS weight
FROM commit_log
