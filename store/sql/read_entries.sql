-- Read a queue's entries with their messages from an offset on, in order, no more than max_bytes of bodies but always the
-- first. Offsets are dense and become visible in order, so that what is missing before the last row read will never appear.
-- Each message is probed by index on its own: as a join, a plan made while the segment was empty would go through all of it.
SELECT
    found.queue_id, found.queue_offset, found.tags_code, found.reconsume_times, found.entered_at, found.segment_id,
    found.log_offset, found.stored_at, found.born_at, found.topic_id, found.message_id, found.transaction_id, found.tags,
    found.keys, found.sharding_key, found.traceparent, found.properties, found.body, found.body_form
FROM (
    SELECT
        e.queue_id, e.queue_offset, e.tags_code, e.reconsume_times, e.entered_at, m.segment_id, m.log_offset, m.stored_at,
        m.born_at, m.topic_id, m.message_id, m.transaction_id, m.tags, m.keys, m.sharding_key, m.traceparent,
        m.properties, m.body, m.body_form,
        sum(octet_length(m.body)) OVER (ORDER BY e.queue_offset ROWS UNBOUNDED PRECEDING)
        - octet_length(m.body) AS bytes_before
    FROM (
        SELECT c.queue_id, c.queue_offset, c.tags_code, c.reconsume_times, c.entered_at, c.log_segment, c.log_offset
        FROM consume_queue AS c
        WHERE c.topic_id = %(topic_id)s AND c.queue_id = %(queue_id)s AND c.queue_offset >= %(from_offset)s
        ORDER BY c.queue_offset
        LIMIT %(max_entries)s
    ) AS e
    CROSS JOIN LATERAL (
        SELECT l.* FROM commit_log AS l
        WHERE l.segment_id = e.log_segment AND l.log_offset = e.log_offset
        LIMIT 1
    ) AS m
) AS found
WHERE found.bytes_before < %(max_bytes)s
ORDER BY found.queue_offset
