-- List decided transactions below an operation id, the latest decision first. At most `max_looked_at` operations are
-- read backwards by their key, whatever the filter. Each returned row has the lowest id that was read (`go_on_below`,
-- null at the end of the operations). Without a match there is one row, in which only this id has a value.
-- Row: A decided transaction of a list: the columns of TransactionRow after the cursor of the next page. `go_on_below`
--    is null if there is no older operation. A list without a match has one row, with null from `operation_id` on.
-- Null: go_on_below, operation_id, endpoint_id, next_check_at, queue_offsets, decided_by, decided_at, last_failure.
-- Types: state State, queue_offsets list[int | None], decided_by Decider.
WITH looked_at AS (
    SELECT
        o.operation_id, o.transaction_id, o.producer_group_id, o.decision, o.decided_by, o.decided_at, o.check_times,
        o.stored_at, o.log_segment, coalesce(o.log_offsets, ARRAY[o.log_offset]) AS log_offsets,
        coalesce(o.message_ids, ARRAY[o.message_id]) AS message_ids,
        coalesce(o.topic_ids, ARRAY[o.topic_id]) AS topic_ids, coalesce(o.queue_ids, ARRAY[o.queue_id]) AS queue_ids,
        CASE o.decision WHEN 'COMMIT' THEN coalesce(o.queue_offsets, ARRAY[o.queue_offset]) END AS queue_offsets
    FROM operation AS o
    WHERE o.operation_id < %(before_operation)s
    ORDER BY o.operation_id DESC
    LIMIT %(max_looked_at)s
)

SELECT
    CASE WHEN l.looked_at = %(max_looked_at)s THEN l.lowest END AS go_on_below,
    o.operation_id, o.transaction_id, o.producer_group_id, NULL::integer AS endpoint_id,
    CASE o.decision WHEN 'COMMIT' THEN 'COMMITTED' ELSE 'ROLLED_BACK' END AS state,
    o.check_times, NULL::timestamptz AS next_check_at, o.stored_at, o.log_segment, o.log_offsets, o.message_ids,
    o.topic_ids, o.queue_ids, o.queue_offsets, o.decided_by, o.decided_at, NULL AS last_failure
FROM (SELECT count(*) AS looked_at, min(operation_id) AS lowest FROM looked_at) AS l
LEFT JOIN LATERAL (
    SELECT *
    FROM looked_at
    WHERE
        decision = any(%(decisions)s::text [])
        AND (%(group_ids)s::integer [] IS NULL OR producer_group_id = any(%(group_ids)s))
        AND (%(topic_id)s::integer IS NULL OR %(topic_id)s = any(topic_ids))
        AND stored_at <= now() - make_interval(secs => %(older_than_seconds)s)
    ORDER BY operation_id DESC
    LIMIT %(max_rows)s
) AS o ON true
ORDER BY o.operation_id DESC
