-- Discard halves: they stay undecided, get no more checks, and only an operator decides them now. A half that was ended
-- since it was found is gone and not returned. The ids are probed as an array, and `discarded_at` stands
-- in a CASE: no plan can then go through all halves, nor through the partial index of due checks.
WITH locked AS (
    SELECT h.transaction_id
    FROM half_message AS h
    WHERE h.transaction_id = any(%(transaction_ids)s::uuid []) AND CASE WHEN h.discarded_at IS NULL THEN true END
    ORDER BY h.transaction_id
    FOR UPDATE
)

UPDATE half_message AS h
SET discarded_at = now()
WHERE h.transaction_id = any(array(SELECT l.transaction_id FROM locked AS l))
RETURNING
    h.transaction_id, h.producer_group_id, h.stored_at, h.check_times, h.log_segment, h.log_offsets, h.message_ids,
    h.topic_ids, h.queue_ids, h.tags_codes, h.last_failure
