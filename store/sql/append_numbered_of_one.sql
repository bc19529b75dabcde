-- Append a message like `append_numbered`, for a batch with one half message: each parameter is one value, not an
-- array. A test runs both statements on the same rows: change both.
INSERT INTO commit_log (
    segment_id, log_offset, stored_at, born_at, topic_id, queue_id, message_id, transaction_id, producer_group_id,
    tags, keys, sharding_key, traceparent, properties, body, body_form
)
SELECT
    %(segment_id)b::integer, a.log_offset, now(), %(born_at)b::timestamptz,
    %(topic_id)b::integer, %(queue_id)b::integer, %(message_id)b::uuid,
    %(transaction_id)b::uuid, %(producer_group_id)b::integer,
    %(tags)b::text, string_to_array(%(keys)b::text, ' '),
    %(sharding_key)b::text, %(traceparent)b::text, %(properties)b::bytea,
    %(body)b::bytea, coalesce(%(body_form)b::text, 'text')
FROM (SELECT (nullif(current_setting('mq.appended', true), '')::bigint [])[1] AS log_offset) AS a
WHERE a.log_offset IS NOT NULL
