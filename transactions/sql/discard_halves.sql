-- Discard half messages: they stay undecided, get no more checks, and only an operator can decide them now. A half
-- message that was ended after it was found has no row any more, and is not returned. A half message that was resumed
-- meanwhile, or whose check was requested, has checks left: it is discarded only if it is older than the retention. The
-- ids are probed as an array, and the condition on `discarded_at` is written as a CASE, so that no plan can scan all
-- half messages or the partial index of due checks.
-- Row: A discarded half message, with the reason why its last check decided nothing.
-- Null: last_failure.
WITH locked AS (
    SELECT h.transaction_id
    FROM half_message AS h
    WHERE
        h.transaction_id = any(%(transaction_ids)s::uuid [])
        AND CASE
            WHEN h.discarded_at IS NULL
                THEN h.exhausted OR h.stored_at < now() - make_interval(hours => %(reserved_hours)s::integer)
        END
    ORDER BY h.transaction_id
    FOR UPDATE
)

UPDATE half_message AS h
SET discarded_at = now(), line = 0
WHERE h.transaction_id = any(array(SELECT l.transaction_id FROM locked AS l))
RETURNING
    h.transaction_id, h.producer_group_id, h.stored_at, h.check_times, h.log_segment,
    coalesce(h.log_offsets, ARRAY[h.log_offset]) AS log_offsets,
    coalesce(h.message_ids, ARRAY[h.message_id]) AS message_ids,
    coalesce(h.topic_ids, ARRAY[h.topic_id]) AS topic_ids, coalesce(h.queue_ids, ARRAY[h.queue_id]) AS queue_ids,
    coalesce(h.tags_codes, ARRAY[coalesce(h.tags_code, 0)]) AS tags_codes, h.last_failure
