-- Find half messages by a key, undecided or decided, below a log offset, the newest first. The index on keys returns
-- all messages with the key, of which at most `max_looked_at` are read, in no order. Without a match there is one row
-- with NULLs.
WITH found AS MATERIALIZED (
    SELECT m.segment_id, m.log_offset, m.transaction_id, m.stored_at, octet_length(m.body) AS size
    FROM commit_log AS m
    WHERE m.keys @> ARRAY[%(key)s::text]
    LIMIT %(max_looked_at)s
)

SELECT NULL::bigint AS go_on_at, half.segment_id, half.log_offset, half.size, half.check_times
FROM (SELECT count(*) AS looked_at FROM found) AS l
LEFT JOIN LATERAL (
    SELECT f.segment_id, f.log_offset, f.size, h.check_times
    FROM found AS f
    LEFT JOIN LATERAL (
        SELECT p.check_times FROM half_message AS p
        WHERE p.transaction_id = f.transaction_id
        LIMIT 1
    ) AS h ON true
    WHERE
        f.transaction_id IS NOT NULL AND f.log_offset < %(offset)s
        AND f.stored_at >= %(since)s AND f.stored_at < %(until)s
    ORDER BY f.log_offset DESC
    LIMIT %(max_rows)s
) AS half ON true
ORDER BY half.log_offset DESC
