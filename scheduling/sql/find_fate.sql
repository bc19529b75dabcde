-- Find what became of a message that does not wait: whether it is visible, wherever in the log the copies lie that it was
-- delivered from, and whether an entry of the last copy would still be kept. No row: the message is kept no more.
SELECT
    m.message_id,
    bool_or(e.visible) IS TRUE AS visible,
    to_regclass('consume_queue_' || max(m.segment_id)) IS NOT NULL AS told
FROM commit_log AS m
LEFT JOIN LATERAL (
    SELECT true AS visible
    FROM consume_queue AS c
    WHERE c.log_offset = m.log_offset AND c.topic_id = m.topic_id
    LIMIT 1
) AS e ON true
WHERE m.message_id = %(message_id)s::uuid
GROUP BY m.message_id
