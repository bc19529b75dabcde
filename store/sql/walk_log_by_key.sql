-- Find messages by a key that very many messages have. The log is read backwards by its own key from below an offset,
-- at most `max_looked_at` messages. Each matching row has the lowest offset that was read (`go_on_below`, null at the
-- end); without a match there is one row, in which only this offset has a value. The conditions are the same as in
-- find_by_key.
-- Row: A message with the key, and where the walk continues: NULL at the end. Other fields are NULL without a match.
-- Null: go_on_below, segment_id, log_offset, message_id, size.
WITH looked_at AS MATERIALIZED (
    SELECT m.segment_id, m.log_offset, m.message_id, m.topic_id, m.stored_at, m.keys, octet_length(m.body) AS size
    FROM commit_log AS m
    WHERE m.log_offset < %(below)s
    ORDER BY m.log_offset DESC
    LIMIT %(max_looked_at)s
)

SELECT
    CASE WHEN l.looked_at = %(max_looked_at)s THEN l.lowest END AS go_on_below,
    f.segment_id, f.log_offset, f.message_id, f.size
FROM (SELECT count(*) AS looked_at, min(log_offset) AS lowest FROM looked_at) AS l
LEFT JOIN LATERAL (
    SELECT m.segment_id, m.log_offset, m.message_id, m.size
    FROM looked_at AS m
    WHERE
        m.keys @> ARRAY[%(key)s::text] AND m.stored_at >= %(since)s AND m.stored_at < %(until)s
        AND CASE
            WHEN %(by_entry)s::boolean THEN (
                SELECT true
                FROM commit_log AS o
                CROSS JOIN LATERAL (
                    SELECT c.queue_offset
                    FROM consume_queue AS c
                    WHERE c.log_offset = o.log_offset AND c.topic_id = %(topic_id)s
                    LIMIT 1
                ) AS e
                WHERE o.message_id = m.message_id
                LIMIT 1
            )
            ELSE m.topic_id = %(topic_id)s
        END
        AND (
            SELECT o.log_offset
            FROM commit_log AS o
            WHERE o.message_id = m.message_id AND o.log_offset > m.log_offset
            LIMIT 1
        ) IS NULL
    ORDER BY m.log_offset DESC
    LIMIT %(max_rows)s
) AS f ON true
ORDER BY f.log_offset DESC
