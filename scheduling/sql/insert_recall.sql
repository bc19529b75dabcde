-- Recall an entry of a level's queue, if the entry belongs to this message, so that a forged handle recalls no other
-- message. The caller holds the lock of the scheduler's progress, so the release either has passed the entry or will
-- find this row. No row is returned if the entry was recalled before, or belongs to another message.
INSERT INTO recall (queue_id, queue_offset)
SELECT c.queue_id, c.queue_offset
FROM consume_queue AS c
CROSS JOIN LATERAL (
    SELECT m.message_id
    FROM commit_log AS m
    WHERE m.segment_id = c.log_segment AND m.log_offset = c.log_offset
    LIMIT 1
) AS waiting
WHERE
    c.topic_id = %(topic_id)s AND c.queue_id = %(queue_id)s AND c.queue_offset = %(queue_offset)s
    AND waiting.message_id = %(message_id)s::uuid
ON CONFLICT DO NOTHING
RETURNING queue_offset
