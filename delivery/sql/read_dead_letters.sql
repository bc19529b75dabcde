-- Read a group's dead letters with their messages, from an offset on: at most max_bytes of bodies, but always the first
-- letter. `letters` is the number of letters before the cut to max_bytes.
SELECT found.*
FROM (
    SELECT
        m.*, d.queue_offset, d.reconsume_times, d.entered_at, count(*) OVER () AS letters,
        sum(octet_length(m.body)) OVER (ORDER BY d.queue_offset ROWS UNBOUNDED PRECEDING)
        - octet_length(m.body) AS bytes_before, d.reason
    FROM (
        SELECT l.queue_offset, l.reconsume_times, l.entered_at, l.log_segment, l.log_offset, l.reason
        FROM dead_letter AS l
        WHERE
            l.group_id = %(group_id)s AND l.topic_id = %(topic_id)s AND l.queue_id = 0
            AND l.queue_offset >= %(from_offset)s
        ORDER BY l.queue_offset
        LIMIT %(max_entries)s
    ) AS d
    CROSS JOIN LATERAL (
        SELECT l.* FROM commit_log AS l
        WHERE l.segment_id = d.log_segment AND l.log_offset = d.log_offset
        LIMIT 1
    ) AS m
) AS found
WHERE found.bytes_before < %(max_bytes)s
ORDER BY found.queue_offset
