-- Read a queue's entries with their messages from an offset on, in order, with at most `max_bytes` of bodies, but at
-- least one; none if `most_of_first` is given and the first body is larger (its length is known without reading the
-- body). Offsets have no hole and become visible in order, so a row that is missing before the last row will never
-- appear. Each message is looked up by a separate index probe: with a join, a plan that was made while the segment was
-- empty would read the whole segment.
SELECT found.*
FROM (
    SELECT
        m.*, e.queue_id AS entry_queue_id, e.queue_offset, e.reconsume_times,
        sum(octet_length(m.body)) OVER (ORDER BY e.queue_offset ROWS UNBOUNDED PRECEDING)
        - octet_length(m.body) AS bytes_before
    FROM (
        SELECT c.queue_id, c.queue_offset, c.reconsume_times, c.log_segment, c.log_offset
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
WHERE
    found.bytes_before < %(max_bytes)s
    AND found.bytes_before + octet_length(found.body) <= coalesce(%(most_of_first)s::bigint, 9223372036854775807)
ORDER BY found.queue_offset
