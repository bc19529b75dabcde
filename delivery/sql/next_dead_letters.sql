-- Find a group's dead letters between two offsets, without bodies, which a redrive does not need.
SELECT
    d.queue_offset, d.tags_code, d.log_segment AS segment_id, d.log_offset, d.origin_topic_id AS topic_id,
    d.origin_queue_id AS queue_id, d.message_id
FROM dead_letter_message AS d
WHERE
    d.group_id = %(group_id)s AND d.topic_id = %(topic_id)s AND d.queue_id = 0
    AND d.queue_offset >= %(from_offset)s AND d.queue_offset < %(until_offset)s
ORDER BY d.queue_offset
LIMIT %(max_entries)s
