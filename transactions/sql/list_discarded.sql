-- List discarded half messages, the latest discard first, by the index of discarded half messages.
SELECT
    h.transaction_id, h.producer_group_id, h.endpoint_id, 'DISCARDED' AS state, h.check_times, h.next_check_at, h.stored_at,
    h.log_segment,
    coalesce(h.log_offsets, ARRAY[h.log_offset]) AS log_offsets,
    coalesce(h.message_ids, ARRAY[h.message_id]) AS message_ids,
    coalesce(h.topic_ids, ARRAY[h.topic_id]) AS topic_ids, coalesce(h.queue_ids, ARRAY[h.queue_id]) AS queue_ids,
    NULL::bigint [] AS queue_offsets,
    'limit' AS decided_by, h.discarded_at AS decided_at, h.last_failure
FROM half_message AS h
WHERE
    h.discarded_at IS NOT NULL
    AND (h.discarded_at, h.transaction_id) < (%(before)s::timestamptz, %(before_id)s::uuid)
    AND h.discarded_at >= coalesce(%(since)s::timestamptz, '-infinity')
    AND h.discarded_at < coalesce(%(until)s::timestamptz, 'infinity')
    AND h.stored_at <= now() - make_interval(secs => %(older_than_seconds)s)
    AND (%(group_ids)s::integer [] IS NULL OR h.producer_group_id = any(%(group_ids)s))
    AND (%(topic_id)s::integer IS NULL OR %(topic_id)s = any(coalesce(h.topic_ids, ARRAY[h.topic_id])))
ORDER BY h.discarded_at DESC, h.transaction_id DESC
LIMIT %(max_rows)s
