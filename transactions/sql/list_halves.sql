-- List undecided transactions, the newest first, after a cursor (the time and the id of the last one shown). The newest
-- half messages of each line of a group are read by the group's index, and the newest of all these are listed. With a
-- filter a line is read until enough match, and to its end only if too few match.
-- Row: A transaction: its half message while it is undecided, else the operation that decided it. Only a half message
--    has `endpoint_id`, `next_check_at` and `last_failure`. Only a commit has `queue_offsets`, each null while its
--    message is delayed. `decided_at` of a discarded transaction is the time of the discard. Lists have one element for
--    each message, in the same order.
-- Null: endpoint_id, next_check_at, queue_offsets, decided_by, decided_at, last_failure.
-- Types: state State, queue_offsets list[int | None], decided_by Decider.
WITH RECURSIVE groups AS (
    (SELECT h.producer_group_id FROM half_message AS h ORDER BY h.producer_group_id LIMIT 1)
    UNION ALL
    SELECT
        (
            SELECT h.producer_group_id
            FROM half_message AS h
            WHERE h.producer_group_id > g.producer_group_id
            ORDER BY h.producer_group_id
            LIMIT 1
        )
    FROM groups AS g
    WHERE g.producer_group_id IS NOT NULL
)

SELECT newest.*
FROM groups AS g
CROSS JOIN (VALUES (0), (1), (6)) AS l (line)
CROSS JOIN LATERAL (
    SELECT
        h.transaction_id, h.producer_group_id, h.endpoint_id,
        CASE WHEN h.discarded_at IS NULL THEN 'PREPARED' ELSE 'DISCARDED' END AS state,
        h.check_times, h.next_check_at, h.stored_at, h.log_segment,
        coalesce(h.log_offsets, ARRAY[h.log_offset]) AS log_offsets,
        coalesce(h.message_ids, ARRAY[h.message_id]) AS message_ids,
        coalesce(h.topic_ids, ARRAY[h.topic_id]) AS topic_ids, coalesce(h.queue_ids, ARRAY[h.queue_id]) AS queue_ids,
        NULL::bigint [] AS queue_offsets, NULL AS decided_by, h.discarded_at AS decided_at, h.last_failure
    FROM half_message AS h
    WHERE
        h.producer_group_id = g.producer_group_id AND h.line = l.line
        AND h.stored_at <= %(before)s
        AND (h.stored_at, h.transaction_id) < (%(before)s, %(before_id)s)
        AND h.stored_at <= now() - make_interval(secs => %(older_than_seconds)s)
        AND (%(discarded)s::boolean IS NULL OR (h.discarded_at IS NOT NULL) = %(discarded)s)
        AND (%(topic_id)s::integer IS NULL OR %(topic_id)s = any(coalesce(h.topic_ids, ARRAY[h.topic_id])))
    ORDER BY h.stored_at DESC, h.transaction_id DESC
    LIMIT %(max_rows)s
) AS newest
WHERE %(group_ids)s::integer [] IS NULL OR g.producer_group_id = any(%(group_ids)s)
ORDER BY newest.stored_at DESC, newest.transaction_id DESC
LIMIT %(max_rows)s
