-- List pending transactions, the longest due for a check first, after a cursor (the time and the id of the last one
-- shown). The first half messages of each line of a group are read by the index, and the first of all these are listed.
-- No index leads from a topic to its transactions, so with a topic each line is read until enough match. Groups may be
-- left out.
WITH due AS (
    SELECT d.transaction_id
    FROM producer_group AS g
    CROSS JOIN LATERAL (
        SELECT of_line.transaction_id, of_line.next_check_at
        FROM (VALUES (1), (6)) AS l (line)
        CROSS JOIN LATERAL (
            SELECT h.transaction_id, h.next_check_at
            FROM half_message AS h
            WHERE
                h.producer_group_id = g.id AND h.line = l.line AND h.discarded_at IS NULL
                AND h.stored_at >= %(after)s::timestamptz - make_interval(secs => l.line)
                AND (h.next_check_at, h.transaction_id) > (%(after)s, %(after_id)s)
                AND h.stored_at <= now() - make_interval(secs => %(older_than_seconds)s)
                AND (%(topic_id)s::integer IS NULL OR %(topic_id)s = any(coalesce(h.topic_ids, ARRAY[h.topic_id])))
            ORDER BY h.stored_at, h.transaction_id
            LIMIT %(max_rows)s
        ) AS of_line
        UNION ALL
        (
            SELECT h.transaction_id, h.next_check_at
            FROM half_message AS h
            WHERE
                h.producer_group_id = g.id AND h.line = 0 AND h.discarded_at IS NULL
                AND h.next_check_at >= %(after)s
                AND (h.next_check_at, h.transaction_id) > (%(after)s, %(after_id)s)
                AND h.stored_at <= now() - make_interval(secs => %(older_than_seconds)s)
                AND (%(topic_id)s::integer IS NULL OR %(topic_id)s = any(coalesce(h.topic_ids, ARRAY[h.topic_id])))
            ORDER BY h.next_check_at, h.transaction_id
            LIMIT %(max_rows)s
        )
    ) AS d
    WHERE (%(group_ids)s::integer [] IS NULL OR g.id = any(%(group_ids)s)) AND g.id <> all(%(passed_over)s::integer [])
    ORDER BY d.next_check_at, d.transaction_id
    LIMIT %(max_rows)s
)

SELECT
    h.transaction_id, h.producer_group_id, h.endpoint_id, 'PREPARED' AS state, h.check_times, h.next_check_at,
    h.stored_at, h.log_segment,
    coalesce(h.log_offsets, ARRAY[h.log_offset]) AS log_offsets,
    coalesce(h.message_ids, ARRAY[h.message_id]) AS message_ids,
    coalesce(h.topic_ids, ARRAY[h.topic_id]) AS topic_ids, coalesce(h.queue_ids, ARRAY[h.queue_id]) AS queue_ids,
    NULL::bigint [] AS queue_offsets, NULL AS decided_by, h.discarded_at AS decided_at, h.last_failure
FROM half_message AS h
WHERE h.transaction_id = any(array(SELECT due.transaction_id FROM due))
ORDER BY h.next_check_at, h.transaction_id
