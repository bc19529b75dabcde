-- Find messages by a key in all topics, or in one topic, the newest first, without their bodies and with the name of
-- the topic unless it was deleted. The index on keys returns all messages with the key, of which at most
-- `max_looked_at` are read, in no order, so that a key of millions of messages costs no more than a key of thousands.
-- If that many were read, `looked_at` equals the limit and no message is returned. A message that was appended again is
-- found once, at its newest log position. Without a match there is one row with NULLs.
-- Row: A message with a key, without its body; all fields but `looked_at` are NULL if there is no message.
-- Null: message_id, topic_id, topic, transaction_id, stored_at, tags, keys, size.
WITH found AS MATERIALIZED (
    SELECT
        m.log_offset, m.message_id, m.topic_id, m.transaction_id, m.stored_at, m.tags, m.keys,
        octet_length(m.body) AS size
    FROM commit_log AS m
    WHERE m.keys @> ARRAY[%(key)s::text]
    LIMIT %(max_looked_at)s
)

SELECT
    l.looked_at, f.message_id, f.topic_id, t.name AS topic, f.transaction_id,
    f.stored_at, f.tags, f.keys, f.size
FROM (SELECT count(*) AS looked_at FROM found) AS l
LEFT JOIN LATERAL (
    SELECT m.log_offset, m.message_id, m.topic_id, m.transaction_id, m.stored_at, m.tags, m.keys, m.size
    FROM found AS m
    WHERE
        l.looked_at < %(max_looked_at)s
        AND (%(topic_id)s::integer IS NULL OR m.topic_id = %(topic_id)s)
        AND (
            SELECT o.log_offset
            FROM commit_log AS o
            WHERE o.message_id = m.message_id AND o.log_offset > m.log_offset
            LIMIT 1
        ) IS NULL
    ORDER BY m.log_offset DESC
    LIMIT %(max_rows)s
) AS f ON true
LEFT JOIN topic AS t ON f.topic_id = t.id
ORDER BY f.log_offset DESC
