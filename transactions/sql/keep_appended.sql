-- Keep what the statement before appended (register `mq.appended`) as half messages, one message each. The database's
-- clock decides when the first check is due. Safe because the append looked for each message and transaction before.
INSERT INTO half_message (
    transaction_id, producer_group_id, endpoint_id, stored_at, immunity_seconds, next_check_at, check_times, exhausted,
    log_segment, log_offset, message_id, topic_id, queue_id, tags_code, line, api_key_id
)
SELECT
    n.transaction_id, n.producer_group_id, n.endpoint_id, now(), n.immunity_seconds,
    now() + make_interval(secs => n.immunity_seconds), 0, false, %(segment_id)s, n.log_offset,
    n.message_id, n.topic_id, n.queue_id, nullif(n.tags_code, 0), n.line, n.api_key_id
FROM unnest(
    %(topic_id)b::integer [], %(queue_id)b::integer [], %(message_id)b::uuid [], %(transaction_id)b::uuid [],
    %(producer_group_id)b::integer [], %(endpoint_id)b::integer [], %(immunity_seconds)b::double precision [],
    %(tags_code)b::bigint [], %(line)b::integer [], %(api_key_id)b::bigint [],
    nullif(current_setting('mq.appended', true), '')::bigint []
) AS n (
    topic_id, queue_id, message_id, transaction_id, producer_group_id, endpoint_id, immunity_seconds, tags_code,
    line, api_key_id, log_offset
)
WHERE n.log_offset IS NOT NULL
