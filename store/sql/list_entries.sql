-- List a topic's entries that became visible within a time, the newest first, starting after a given entry. Halving the
-- range of offsets, which have no hole, finds where the time begins and ends in each queue, with some twenty index
-- probes for a million entries; an entry that retention has just dropped counts as earlier. Then the last entries
-- before the end are read backwards by their key.
-- Row: An entry in a list by time, with the log position and size of its message.
WITH RECURSIVE search AS (
    SELECT q.queue_id, edge.is_end, edge.at_time, q.low, q.high
    FROM unnest(%(queue_id)s::integer [], %(low)s::bigint [], %(high)s::bigint []) AS q (queue_id, low, high)
    CROSS JOIN (VALUES (false, %(since)s::timestamptz), (true, %(until)s::timestamptz)) AS edge (is_end, at_time)
    UNION ALL
    SELECT
        s.queue_id, s.is_end, s.at_time,
        CASE WHEN probe.entered_at >= s.at_time THEN s.low ELSE (s.low + s.high) / 2 + 1 END,
        CASE WHEN probe.entered_at >= s.at_time THEN (s.low + s.high) / 2 ELSE s.high END
    FROM search AS s
    LEFT JOIN LATERAL (
        SELECT c.entered_at
        FROM consume_queue AS c
        WHERE c.topic_id = %(topic_id)s AND c.queue_id = s.queue_id AND c.queue_offset = (s.low + s.high) / 2
        LIMIT 1
    ) AS probe ON true
    WHERE s.low < s.high
),

newest AS (
    SELECT e.*
    FROM search AS first
    INNER JOIN search AS beyond ON first.queue_id = beyond.queue_id
    CROSS JOIN LATERAL (
        SELECT c.queue_id, c.queue_offset, c.reconsume_times, c.entered_at, c.log_segment, c.log_offset
        FROM consume_queue AS c
        WHERE
            c.topic_id = %(topic_id)s AND c.queue_id = first.queue_id
            AND c.queue_offset >= first.low AND c.queue_offset < beyond.low
            AND (c.entered_at, c.queue_id, c.queue_offset)
            < (%(before_time)s::timestamptz, %(before_queue)s::integer, %(before_offset)s::bigint)
        ORDER BY c.queue_offset DESC
        LIMIT %(max_rows)s
    ) AS e
    WHERE first.low >= first.high AND beyond.low >= beyond.high AND NOT first.is_end AND beyond.is_end
    ORDER BY e.entered_at DESC, e.queue_id DESC, e.queue_offset DESC
    LIMIT %(max_rows)s
)

SELECT
    n.queue_id, n.queue_offset, n.reconsume_times, n.entered_at, m.segment_id, m.log_offset, m.message_id,
    octet_length(m.body) AS size
FROM newest AS n
CROSS JOIN LATERAL (
    SELECT l.* FROM commit_log AS l
    WHERE l.segment_id = n.log_segment AND l.log_offset = n.log_offset
    LIMIT 1
) AS m
ORDER BY n.entered_at DESC, n.queue_id DESC, n.queue_offset DESC
