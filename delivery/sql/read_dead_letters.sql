-- Read a group's dead letters that were not redriven, with their messages, from an offset on: no more than max_bytes of
-- bodies, but always the first. `letters` is the number found before that cut; `reason` is that of the last nack that gave
-- one.
SELECT found.*, k.reason
FROM (
    SELECT
        m.*, c.queue_offset, c.reconsume_times, c.entered_at, count(*) OVER () AS letters,
        sum(octet_length(m.body)) OVER (ORDER BY c.queue_offset ROWS UNBOUNDED PRECEDING)
        - octet_length(m.body) AS bytes_before
    FROM (
        SELECT e.queue_offset, e.reconsume_times, e.entered_at, e.log_segment, e.log_offset
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
LEFT JOIN LATERAL (
    SELECT n.reason
    FROM nack AS n
    WHERE n.log_offset = found.log_offset AND n.group_id = %(group_id)s
    ORDER BY n.nacked_at DESC
    LIMIT 1
) AS k ON true
WHERE found.bytes_before < %(max_bytes)s
ORDER BY found.queue_offset
