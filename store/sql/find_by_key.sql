-- Find messages by a key below a log offset, the newest first. The index on keys returns all messages with the key, of
-- which at most `max_looked_at` are read, in no order, so that a key of millions of messages costs no more than a key
-- of thousands. If that many were read, `looked_at` equals the limit and no message is returned. A message that was
-- appended again is found once, at its newest log position; in a topic of the broker's own, a message is found by its
-- entry in the topic.
-- Row: A message with the key. Without a match there is one row with NULLs and `looked_at`.
-- Null: segment_id, log_offset, message_id, size.
WITH found AS MATERIALIZED (
    SELECT m.segment_id, m.log_offset, m.message_id, m.topic_id, m.stored_at, octet_length(m.body) AS size
    FROM commit_log AS m
    WHERE m.keys @> ARRAY[%(key)s::text]
    LIMIT %(max_looked_at)s
)

SELECT l.looked_at, f.segment_id, f.log_offset, f.message_id, f.size
FROM (SELECT count(*) AS looked_at FROM found) AS l
LEFT JOIN LATERAL (
    SELECT m.segment_id, m.log_offset, m.message_id, m.size
    FROM found AS m
    WHERE
        l.looked_at < %(max_looked_at)s AND m.log_offset < %(below)s AND m.stored_at >= %(since)s AND m.stored_at < %(until)s
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
