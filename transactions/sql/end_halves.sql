-- End pending half messages: this delete is the decision. A row not returned was not pending for this group and offset:
-- another process decided first, or the end is wrong. Rows are locked in id order, so two batches that share transactions
-- cannot deadlock; a row that another batch is just ending is waited for, and then found gone. The ids are probed by
-- index as an array too: no plan can then go through all halves, however few there were when the planner last looked.
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
        AND (a.log_offset IS NULL OR a.log_offset = any(h.log_offsets))
        AND (a.discarded IS NULL OR (h.discarded_at IS NOT NULL) = a.discarded)
    ORDER BY h.transaction_id
    FOR UPDATE OF h
)

DELETE FROM half_message AS h
WHERE h.transaction_id = any(array(SELECT locked.transaction_id FROM locked))
RETURNING
    h.transaction_id, h.producer_group_id, h.stored_at, h.check_times, h.log_segment, h.log_offsets, h.message_ids,
    h.topic_ids, h.queue_ids, h.tags_codes, h.delays,
    h.discarded_at IS NOT NULL AS was_discarded
