-- Sum a group's latest dead letters by the values that they share: by topic, by tags, by attempts, by hour and by
-- reason. At most `max_looked_at` letters are read, which bounds the cost.
WITH letters AS (
    SELECT
        d.origin AS topic, coalesce(d.tags, '') AS tags, (d.reconsume_times + 1)::text AS attempts,
        to_char(date_trunc('hour', d.entered_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"') AS hour,
        coalesce(d.reason, '') AS reason
    FROM dead_letter_message AS d
    WHERE d.group_id = %(group_id)s AND d.topic_id = %(topic_id)s AND d.queue_id = 0
    ORDER BY d.queue_offset DESC
    LIMIT %(max_looked_at)s
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
