-- Resume a discarded half message: it is pending again, with 0 checks. A half message that is not returned is not
-- discarded, or is older than the retention and would be discarded again at once.
-- Row: A discarded half message that is pending again, with the time of its first check.
UPDATE half_message AS h
SET discarded_at = NULL, line = 0, exhausted = false, check_times = 0, next_check_at = now(), last_failure = NULL
WHERE
    transaction_id = %(transaction_id)s AND discarded_at IS NOT NULL
    AND stored_at >= now() - make_interval(hours => %(reserved_hours)s::integer)
RETURNING
    h.transaction_id, h.producer_group_id, h.stored_at, h.check_times, h.log_segment,
    coalesce(h.log_offsets, ARRAY[h.log_offset]) AS log_offsets,
    coalesce(h.message_ids, ARRAY[h.message_id]) AS message_ids,
    coalesce(h.topic_ids, ARRAY[h.topic_id]) AS topic_ids, coalesce(h.queue_ids, ARRAY[h.queue_id]) AS queue_ids,
    h.next_check_at
