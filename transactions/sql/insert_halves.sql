-- Insert half messages for stored messages: the values of a single message in columns, of several messages in arrays.
-- For a single message each array would take 24 bytes more than a column. The database's clock decides when the first
-- check is due.
INSERT INTO half_message (
    transaction_id, producer_group_id, endpoint_id, stored_at, immunity_seconds, next_check_at, check_times, exhausted,
    log_segment, log_offset, message_id, topic_id, queue_id, tags_code,
    log_offsets, message_ids, topic_ids, queue_ids, tags_codes, delays, line, api_key_id
)
SELECT
    h.transaction_id, h.producer_group_id, h.endpoint_id, now(), h.immunity_seconds,
    now() + make_interval(secs => h.immunity_seconds), 0, false, %(segment_id)s,
    CASE WHEN m.only THEN m.log_offsets[1] END, CASE WHEN m.only THEN m.message_ids[1] END,
    CASE WHEN m.only THEN m.topic_ids[1] END, CASE WHEN m.only THEN m.queue_ids[1] END,
    CASE WHEN m.only THEN nullif(m.tags_codes[1], 0) END,
    CASE WHEN NOT m.only THEN m.log_offsets END, CASE WHEN NOT m.only THEN m.message_ids END,
    CASE WHEN NOT m.only THEN m.topic_ids END, CASE WHEN NOT m.only THEN m.queue_ids END,
    CASE WHEN NOT m.only THEN m.tags_codes END,
    h.delays::jsonb, h.line, h.api_key_id
FROM unnest(
    %(transaction_id)b::uuid [], %(producer_group_id)b::integer [], %(endpoint_id)b::integer [],
    %(immunity_seconds)b::double precision [], %(log_offsets)b::text [], %(message_ids)b::text [],
    %(topic_ids)b::text [], %(queue_ids)b::text [], %(tags_codes)b::text [], %(delays)b::text [],
    %(line)b::integer [], %(api_key_id)b::bigint []
) AS h (
    transaction_id, producer_group_id, endpoint_id, immunity_seconds, log_offsets, message_ids, topic_ids, queue_ids,
    tags_codes, delays, line, api_key_id
)
CROSS JOIN LATERAL (
    SELECT
        h.log_offsets::bigint [] AS log_offsets, h.message_ids::uuid [] AS message_ids,
        h.topic_ids::integer [] AS topic_ids, h.queue_ids::integer [] AS queue_ids,
        h.tags_codes::bigint [] AS tags_codes, cardinality(h.log_offsets::bigint []) = 1 AS only
) AS m
