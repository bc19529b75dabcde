-- Find transactions by their ids: undecided ones in the half messages, decided ones in the operations that decided
-- them. One statement has one snapshot, so a transaction that is ended meanwhile is found in exactly one of the two
-- tables.
SELECT
    h.transaction_id, h.producer_group_id, h.endpoint_id,
    CASE WHEN h.discarded_at IS NULL THEN 'PREPARED' ELSE 'DISCARDED' END AS state,
    h.check_times, h.next_check_at, h.stored_at, h.log_segment,
    coalesce(h.log_offsets, ARRAY[h.log_offset]) AS log_offsets,
    coalesce(h.message_ids, ARRAY[h.message_id]) AS message_ids,
    coalesce(h.topic_ids, ARRAY[h.topic_id]) AS topic_ids, coalesce(h.queue_ids, ARRAY[h.queue_id]) AS queue_ids,
    NULL::bigint [] AS queue_offsets, NULL AS decided_by, h.discarded_at AS decided_at, h.last_failure
FROM half_message AS h
WHERE h.transaction_id = any(%(transaction_ids)s::uuid [])
UNION ALL
SELECT
    o.transaction_id, o.producer_group_id, NULL,
    CASE o.decision WHEN 'COMMIT' THEN 'COMMITTED' ELSE 'ROLLED_BACK' END,
    o.check_times, NULL, o.stored_at, o.log_segment, coalesce(o.log_offsets, ARRAY[o.log_offset]),
    coalesce(o.message_ids, ARRAY[o.message_id]), coalesce(o.topic_ids, ARRAY[o.topic_id]),
    coalesce(o.queue_ids, ARRAY[o.queue_id]),
    CASE o.decision WHEN 'COMMIT' THEN coalesce(o.queue_offsets, ARRAY[o.queue_offset]) END,
    o.decided_by, o.decided_at, NULL
FROM operation AS o
WHERE o.transaction_id = any(%(transaction_ids)s::uuid []) AND o.decision IN ('COMMIT', 'ROLLBACK')
