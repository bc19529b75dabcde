-- Insert the operations of transactions. The values of a single message are stored in columns, of several messages in
-- arrays. This runs in the same database transaction as the end, so that no end exists without its operation, and no
-- operation without its end.
INSERT INTO operation (
    segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times, stored_at,
    log_segment, log_offset, message_id, topic_id, queue_id, queue_offset,
    log_offsets, message_ids, topic_ids, queue_ids, queue_offsets, remark
)
SELECT
    %(segment_id)s, nextval('operation_id'), o.transaction_id, o.producer_group_id, o.decision, o.decided_by,
    clock_timestamp(), o.check_times, o.stored_at, o.log_segment,
    CASE WHEN m.only THEN m.log_offsets[1] END, CASE WHEN m.only THEN m.message_ids[1] END,
    CASE WHEN m.only THEN m.topic_ids[1] END, CASE WHEN m.only THEN m.queue_ids[1] END,
    CASE WHEN m.only THEN m.queue_offsets[1] END,
    CASE WHEN NOT m.only THEN m.log_offsets END, CASE WHEN NOT m.only THEN m.message_ids END,
    CASE WHEN NOT m.only THEN m.topic_ids END, CASE WHEN NOT m.only THEN m.queue_ids END,
    CASE WHEN NOT m.only THEN m.queue_offsets END, o.remark
FROM unnest(
    %(transaction_id)b::uuid [], %(producer_group_id)b::integer [], %(decision)b::text [], %(decided_by)b::text [],
    %(check_times)b::integer [], %(stored_at)b::timestamptz [], %(log_segment)b::integer [], %(log_offsets)b::text [],
    %(message_ids)b::text [], %(topic_ids)b::text [], %(queue_ids)b::text [], %(queue_offsets)b::text [],
    %(remark)b::text []
) AS o (
    transaction_id, producer_group_id, decision, decided_by, check_times, stored_at, log_segment, log_offsets,
    message_ids, topic_ids, queue_ids, queue_offsets, remark
)
CROSS JOIN LATERAL (
    SELECT
        o.log_offsets::bigint [] AS log_offsets, o.message_ids::uuid [] AS message_ids,
        o.topic_ids::integer [] AS topic_ids, o.queue_ids::integer [] AS queue_ids,
        o.queue_offsets::bigint [] AS queue_offsets, cardinality(o.log_offsets::bigint []) = 1 AS only
) AS m
