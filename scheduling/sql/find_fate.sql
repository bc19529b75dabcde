-- Find whether a message that does not wait is visible at any of its log offsets, and whether its newest segment is
-- kept, so that an entry would be found. No row is returned if the message itself is dropped.
-- Row: Whether a message is visible, and whether its segment is kept, so that an entry of the message would be found.
SELECT
    m.message_id,
    bool_or(e.visible) IS TRUE AS visible,
    to_regclass('consume_queue_' || max(m.segment_id)) IS NOT NULL AS kept
FROM commit_log AS m
LEFT JOIN LATERAL (
    SELECT true AS visible
    FROM consume_queue AS c
    WHERE c.log_offset = m.log_offset AND c.topic_id = m.topic_id
    LIMIT 1
) AS e ON true
WHERE m.message_id = %(message_id)s::uuid
GROUP BY m.message_id
