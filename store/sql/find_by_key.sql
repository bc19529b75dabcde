-- Find messages by a key, the newest first, from below a log offset on. The index on keys gives all messages of the key;
-- `max_looked_at` of them at most are read, in no order, so that a key of millions costs no more than one of thousands:
-- when that many were read, `looked_at` says so and nothing is found. A message that was appended again is found once, at
-- its newest log position; in one of the broker's own topics, by its entry there.
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
