-- Read a group's dead letters that were not redriven, with their messages, from an offset on.
SELECT
    c.queue_offset, c.tags_code, c.reconsume_times, c.entered_at, m.segment_id, m.log_offset, m.stored_at, m.born_at,
    m.topic_id, m.queue_id, m.message_id, m.transaction_id, m.tags, m.keys, m.sharding_key, m.traceparent, m.properties,
    m.body, m.body_form
FROM consume_queue AS c
CROSS JOIN LATERAL (
    SELECT l.* FROM commit_log AS l
    WHERE l.segment_id = c.log_segment AND l.log_offset = c.log_offset
    LIMIT 1
) AS m
WHERE
    c.topic_id = %(topic_id)s AND c.queue_id = 0 AND c.queue_offset >= %(from_offset)s
    AND NOT EXISTS (
        SELECT 1 FROM redrive AS r WHERE r.group_id = %(group_id)s AND r.queue_offset = c.queue_offset
    )
ORDER BY c.queue_offset
LIMIT %(max_entries)s
