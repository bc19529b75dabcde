-- Read a group's dead letters that were not redriven, with their messages, from an offset on: no more than max_bytes of
-- bodies, but always the first. `letters` is the number found before that cut.
SELECT
    found.queue_offset, found.tags_code, found.reconsume_times, found.entered_at, found.segment_id, found.log_offset,
    found.stored_at, found.born_at, found.topic_id, found.queue_id, found.message_id, found.transaction_id, found.tags,
    found.keys, found.sharding_key, found.traceparent, found.properties, found.body, found.body_form, found.letters
FROM (
    SELECT
        c.queue_offset, c.tags_code, c.reconsume_times, c.entered_at, m.segment_id, m.log_offset, m.stored_at, m.born_at,
        m.topic_id, m.queue_id, m.message_id, m.transaction_id, m.tags, m.keys, m.sharding_key, m.traceparent,
        m.properties, m.body, m.body_form, count(*) OVER () AS letters,
        sum(octet_length(m.body)) OVER (ORDER BY c.queue_offset ROWS UNBOUNDED PRECEDING)
        - octet_length(m.body) AS bytes_before
    FROM (
        SELECT e.queue_offset, e.tags_code, e.reconsume_times, e.entered_at, e.log_segment, e.log_offset
        FROM consume_queue AS e
        WHERE
            e.topic_id = %(topic_id)s AND e.queue_id = 0 AND e.queue_offset >= %(from_offset)s
            AND NOT EXISTS (
                SELECT 1 FROM redrive AS r WHERE r.group_id = %(group_id)s AND r.queue_offset = e.queue_offset
            )
        ORDER BY e.queue_offset
        LIMIT %(max_entries)s
    ) AS c
    CROSS JOIN LATERAL (
        SELECT l.* FROM commit_log AS l
        WHERE l.segment_id = c.log_segment AND l.log_offset = c.log_offset
        LIMIT 1
    ) AS m
) AS found
WHERE found.bytes_before < %(max_bytes)s
ORDER BY found.queue_offset
