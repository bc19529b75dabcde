-- Find a group's dead letters between two offsets that match a filter, the oldest first, with the filter of
-- `list_dead_letters`. At most `max_looked_at` letters are read, whatever the filter; each row has the offset after the
-- last letter that was read (`go_on_at`, null at the end of the letters). Without a match there is one row, in which
-- only `go_on_at` has a value.
SELECT
    CASE WHEN l.looked_at = %(max_looked_at)s THEN l.highest + 1 END AS go_on_at, d.queue_offset,
    d.origin_topic_id, d.message_id
FROM (
    SELECT count(*) AS looked_at, max(a.queue_offset) AS highest
    FROM (
        SELECT e.queue_offset
        FROM dead_letter AS e
        WHERE
            e.group_id = %(group_id)s AND e.topic_id = %(topic_id)s AND e.queue_id = 0
            AND e.queue_offset >= %(from_offset)s AND e.queue_offset < %(until_offset)s
        ORDER BY e.queue_offset
        LIMIT %(max_looked_at)s
    ) AS a
) AS l
LEFT JOIN LATERAL (
    SELECT c.queue_offset, c.origin_topic_id, c.message_id
    FROM dead_letter_message AS c
    WHERE
        c.group_id = %(group_id)s AND c.topic_id = %(topic_id)s AND c.queue_id = 0
        AND c.queue_offset >= %(from_offset)s AND c.queue_offset <= l.highest
        AND (%(topic)s::text IS NULL OR c.origin = %(topic)s)
        AND (%(tags)s::text IS NULL OR coalesce(c.tags, '') = %(tags)s)
        AND (%(attempts)s::integer IS NULL OR c.reconsume_times + 1 = %(attempts)s)
        AND (%(hour)s::timestamptz IS NULL OR date_trunc('hour', c.entered_at) = %(hour)s)
        AND (%(reason)s::text IS NULL OR coalesce(c.reason, '') = %(reason)s)
    ORDER BY c.queue_offset
    LIMIT %(max_rows)s
) AS d ON true
ORDER BY d.queue_offset
