-- Keep stored messages as half messages. The database's clock decides when the first check is due.
INSERT INTO half_message (
    transaction_id, producer_group_id, endpoint_id, stored_at, immunity_seconds, next_check_at, check_times, exhausted,
    log_segment, log_offsets, message_ids, topic_ids, queue_ids, tags_codes, delays, api_key_id
)
SELECT
    h.transaction_id, h.producer_group_id, h.endpoint_id, now(), h.immunity_seconds,
    now() + make_interval(secs => h.immunity_seconds), 0, false, %(segment_id)s, h.log_offsets::bigint [],
    h.message_ids::uuid [], h.topic_ids::integer [], h.queue_ids::integer [], h.tags_codes::bigint [],
    h.delays::jsonb, h.api_key_id
FROM unnest(
    %(transaction_id)b::uuid [], %(producer_group_id)b::integer [], %(endpoint_id)b::integer [],
    %(immunity_seconds)b::double precision [], %(log_offsets)b::text [], %(message_ids)b::text [],
    %(topic_ids)b::text [], %(queue_ids)b::text [], %(tags_codes)b::text [], %(delays)b::text [],
    %(api_key_id)b::bigint []
) AS h (
    transaction_id, producer_group_id, endpoint_id, immunity_seconds, log_offsets, message_ids, topic_ids, queue_ids,
    tags_codes, delays, api_key_id
)
