-- Find a group's dead letters between two offsets that were not redriven and match a filter, the oldest first. `max_looked_at`
-- letters at most are read, whatever the filter; each row has the offset behind the last one that was read (`go_on_at`, null
-- at the end of the letters). Without a match there is one row, with that offset alone.
-- Which letters count, what narrows them and their reasons is repeated of list_dead_letters, for the reasons that
-- sum_dead_letters gives: the console's redrive by a filter is held to the page with the same filter.
WITH looked_at AS (
    SELECT e.queue_offset, e.reconsume_times, e.entered_at, e.log_segment, e.log_offset
    FROM consume_queue AS e
    WHERE
        e.topic_id = %(topic_id)s AND e.queue_id = 0
        AND e.queue_offset >= %(from_offset)s AND e.queue_offset < %(until_offset)s
        AND NOT EXISTS (
            SELECT 1 FROM redrive AS r WHERE r.group_id = %(group_id)s AND r.queue_offset = e.queue_offset
        )
    ORDER BY e.queue_offset
    LIMIT %(max_looked_at)s
)

SELECT
    CASE WHEN l.looked_at = %(max_looked_at)s THEN l.highest + 1 END AS go_on_at, d.queue_offset, d.message_id
FROM (SELECT count(*) AS looked_at, max(queue_offset) AS highest FROM looked_at) AS l
LEFT JOIN LATERAL (
    SELECT c.queue_offset, m.message_id
    FROM looked_at AS c
    CROSS JOIN LATERAL (
        SELECT o.message_id, o.topic_id, o.tags
        FROM commit_log AS o
        WHERE o.segment_id = c.log_segment AND o.log_offset = c.log_offset
        LIMIT 1
    ) AS m
    LEFT JOIN topic AS t ON m.topic_id = t.id
    LEFT JOIN LATERAL (
        SELECT n.reason
        FROM nack AS n
        WHERE n.log_offset = c.log_offset AND n.group_id = %(group_id)s
        ORDER BY n.nacked_at DESC
        LIMIT 1
    ) AS k ON true
    WHERE
        (%(topic)s::text IS NULL OR t.name = %(topic)s)
        AND (%(tags)s::text IS NULL OR coalesce(m.tags, '') = %(tags)s)
        AND (%(attempts)s::integer IS NULL OR c.reconsume_times + 1 = %(attempts)s)
        AND (%(hour)s::timestamptz IS NULL OR date_trunc('hour', c.entered_at) = %(hour)s)
        AND (%(reason)s::text IS NULL OR coalesce(k.reason, '') = %(reason)s)
    ORDER BY c.queue_offset
    LIMIT %(max_rows)s
) AS d ON true
ORDER BY d.queue_offset
