-- End pending half messages: this delete is the decision. A half message that is not returned was not pending with this
-- group and log offset: another process decided first, or the end names a wrong one. Rows are locked in the order of
-- their ids, so two batches with the same transactions cannot deadlock. If another batch is just ending a row, this
-- statement waits for that batch, and then the row is gone. The ids are also probed as an array, so that no plan can
-- scan all half messages, even if it was made while there were few.
-- Row: A half message that an end has deleted, which is the decision. `delays` is null if no message is delayed.
WITH asked AS (
    SELECT *
    FROM unnest(
        %(transaction_id)b::uuid [], %(group_id)b::integer [], %(log_offset)b::bigint [], %(discarded)b::boolean []
    ) AS a (transaction_id, group_id, log_offset, discarded)
),

locked AS (
    SELECT h.transaction_id
    FROM half_message AS h
    INNER JOIN asked AS a ON h.transaction_id = a.transaction_id
    WHERE
        h.transaction_id = any(%(transaction_id)b::uuid [])
        AND (a.group_id IS NULL OR h.producer_group_id = a.group_id)
        AND (a.log_offset IS NULL OR a.log_offset = any(coalesce(h.log_offsets, ARRAY[h.log_offset])))
        AND (a.discarded IS NULL OR (h.discarded_at IS NOT NULL) = a.discarded)
    ORDER BY h.transaction_id
    FOR UPDATE OF h
)

DELETE FROM half_message AS h
WHERE h.transaction_id = any(array(SELECT locked.transaction_id FROM locked))
RETURNING
    h.transaction_id, h.producer_group_id, h.stored_at, h.check_times, h.log_segment,
    coalesce(h.log_offsets, ARRAY[h.log_offset]) AS log_offsets,
    coalesce(h.message_ids, ARRAY[h.message_id]) AS message_ids,
    coalesce(h.topic_ids, ARRAY[h.topic_id]) AS topic_ids, coalesce(h.queue_ids, ARRAY[h.queue_id]) AS queue_ids,
    coalesce(h.tags_codes, ARRAY[coalesce(h.tags_code, 0)]) AS tags_codes, h.delays,
    h.discarded_at IS NOT NULL AS was_discarded
