-- Find a group's dead letters that were not redriven, between two offsets, without their bodies: a redrive needs none.
SELECT
    c.queue_offset, c.tags_code, m.segment_id, m.log_offset, m.topic_id, m.queue_id, m.message_id
FROM (
    SELECT e.queue_offset, e.tags_code, e.log_segment, e.log_offset
    FROM consume_queue AS e
    WHERE
        e.topic_id = %(topic_id)s AND e.queue_id = 0
        AND e.queue_offset >= %(from_offset)s AND e.queue_offset < %(until_offset)s
        AND NOT EXISTS (
            SELECT 1 FROM redrive AS r WHERE r.group_id = %(group_id)s AND r.queue_offset = e.queue_offset
        )
    ORDER BY e.queue_offset
    LIMIT %(max_entries)s
) AS c
CROSS JOIN LATERAL (
    SELECT l.segment_id, l.log_offset, l.topic_id, l.queue_id, l.message_id FROM commit_log AS l
    WHERE l.segment_id = c.log_segment AND l.log_offset = c.log_offset
    LIMIT 1
) AS m
ORDER BY c.queue_offset
