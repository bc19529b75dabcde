-- Resume a discarded half: it is pending again, and its checks start at 0. A half that is not returned is not discarded, or
-- is older than the retention: it would be discarded again at once.
UPDATE half_message
SET discarded_at = NULL, exhausted = false, check_times = 0, next_check_at = now(), last_failure = NULL
WHERE
    transaction_id = %(transaction_id)s AND discarded_at IS NOT NULL
    AND stored_at >= now() - make_interval(hours => %(reserved_hours)s::integer)
RETURNING
    transaction_id, producer_group_id, stored_at, check_times, log_segment, log_offsets, message_ids, topic_ids,
    queue_ids, next_check_at
