-- Sum a group's latest dead letters that were not redriven by what they have in common: their topic, tags, attempts, hour and
-- reason, each by itself. `max_looked_at` letters at most are read, so that no number of them costs more.
-- Which letters count, and their reasons, is repeated of list_dead_letters: a view could not take `max_looked_at` below its
-- joins, a function would hide the tables from the tests that read statements, and SQL is never made from pieces. The page's
-- test follows links from the sums to the lists, with a redriven letter beside them.
WITH letters AS (
    SELECT
        coalesce(t.name, '(deleted topic ' || m.topic_id || ')') AS topic, coalesce(m.tags, '') AS tags,
        (c.reconsume_times + 1)::text AS attempts,
        to_char(date_trunc('hour', c.entered_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"') AS hour,
        coalesce(k.reason, '') AS reason
    FROM (
        SELECT e.queue_offset, e.reconsume_times, e.entered_at, e.log_segment, e.log_offset
        FROM consume_queue AS e
        WHERE
            e.topic_id = %(topic_id)s AND e.queue_id = 0
            AND NOT EXISTS (
                SELECT 1 FROM redrive AS r WHERE r.group_id = %(group_id)s AND r.queue_offset = e.queue_offset
            )
        ORDER BY e.queue_offset DESC
        LIMIT %(max_looked_at)s
    ) AS c
    CROSS JOIN LATERAL (
        SELECT o.topic_id, o.tags
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
)

SELECT
    CASE
        WHEN grouping(l.topic) = 0 THEN 'topic'
        WHEN grouping(l.tags) = 0 THEN 'tags'
        WHEN grouping(l.attempts) = 0 THEN 'attempts'
        WHEN grouping(l.hour) = 0 THEN 'hour'
        ELSE 'reason'
    END AS field,
    coalesce(l.topic, l.tags, l.attempts, l.hour, l.reason) AS shared_value, count(*) AS letters
FROM letters AS l
GROUP BY GROUPING SETS ((l.topic), (l.tags), (l.attempts), (l.hour), (l.reason))
ORDER BY field, letters DESC, shared_value
LIMIT %(max_rows)s
