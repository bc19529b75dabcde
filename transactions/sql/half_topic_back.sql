-- Read half messages, undecided or decided, below a log offset, the newest first. At most `max_looked_at` rows of the
-- log are read, as in `half_topic_ahead`. `go_on_at` is the lowest offset that was read, null at the beginning of the
-- log.
WITH looked_at AS (
    SELECT l.segment_id, l.log_offset, l.transaction_id, l.stored_at, octet_length(l.body) AS size
    FROM commit_log AS l
    WHERE l.log_offset < %(offset)s
    ORDER BY l.log_offset DESC
    LIMIT %(max_looked_at)s
)

SELECT
    CASE WHEN l.looked_at = %(max_looked_at)s THEN l.lowest END AS go_on_at, half.segment_id, half.log_offset,
    half.size, half.check_times
FROM (SELECT count(*) AS looked_at, min(log_offset) AS lowest FROM looked_at) AS l
LEFT JOIN LATERAL (
    SELECT a.segment_id, a.log_offset, a.size, h.check_times
    FROM looked_at AS a
    LEFT JOIN LATERAL (
        SELECT d.check_times FROM half_message AS d
        WHERE d.transaction_id = a.transaction_id
        LIMIT 1
    ) AS h ON true
    WHERE a.transaction_id IS NOT NULL AND a.stored_at >= %(since)s AND a.stored_at < %(until)s
    ORDER BY a.log_offset DESC
    LIMIT %(max_rows)s
) AS half ON true
ORDER BY half.log_offset DESC
