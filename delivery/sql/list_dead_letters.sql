-- List a group's dead letters before an offset that match a filter, the latest first, without bodies. At most
-- `max_looked_at` letters are read, whatever the filter; each row has the lowest offset that was read (`go_on_before`,
-- null at the end of the letters). Without a match there is one row, in which only `go_on_before` has a value.
SELECT
    CASE WHEN l.looked_at = %(max_looked_at)s THEN l.lowest END AS go_on_before,
    d.queue_offset, d.origin_topic_id, d.message_id, d.origin AS topic, d.tags, d.keys, d.reconsume_times,
    d.entered_at AS dead_at, d.size, d.reason
FROM (
    SELECT count(*) AS looked_at, min(a.queue_offset) AS lowest
    FROM (
        SELECT e.queue_offset
        FROM dead_letter AS e
        WHERE e.group_id = %(group_id)s AND e.topic_id = %(topic_id)s AND e.queue_id = 0 AND e.queue_offset < %(before)s
        ORDER BY e.queue_offset DESC
        LIMIT %(max_looked_at)s
    ) AS a
) AS l
LEFT JOIN LATERAL (
    SELECT c.*
    FROM dead_letter_message AS c
    WHERE
        c.group_id = %(group_id)s AND c.topic_id = %(topic_id)s AND c.queue_id = 0
        AND c.queue_offset < %(before)s AND c.queue_offset >= l.lowest
        AND (%(topic)s::text IS NULL OR c.origin = %(topic)s)
        AND (%(tags)s::text IS NULL OR coalesce(c.tags, '') = %(tags)s)
        AND (%(attempts)s::integer IS NULL OR c.reconsume_times + 1 = %(attempts)s)
        AND (%(hour)s::timestamptz IS NULL OR date_trunc('hour', c.entered_at) = %(hour)s)
        AND (%(reason)s::text IS NULL OR coalesce(c.reason, '') = %(reason)s)
    ORDER BY c.queue_offset DESC
    LIMIT %(max_rows)s
) AS d ON true
ORDER BY d.queue_offset DESC
