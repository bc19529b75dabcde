-- Read half messages, undecided or decided, in the order of the log from an offset on. At most `max_looked_at` rows of
-- the log are read, because most may be other messages. Each returned row has the offset after the last row that was
-- read (`go_on_at`); without a half message there is one row with only this offset. `check_times` is null for a decided
-- transaction.
-- Row: A half message by its log position; `check_times` is None once its transaction is decided. `go_on_at`: where the
--    next request continues. A reading without a half message has one row, with None in all other fields.
-- Null: go_on_at, segment_id, log_offset, size, check_times.
WITH looked_at AS (
    SELECT l.segment_id, l.log_offset, l.transaction_id, octet_length(l.body) AS size
    FROM commit_log AS l
    WHERE l.log_offset >= %(offset)s
    ORDER BY l.log_offset
    LIMIT %(max_looked_at)s
)

SELECT coalesce(l.highest + 1, %(offset)s) AS go_on_at, half.segment_id, half.log_offset, half.size, half.check_times
FROM (SELECT max(log_offset) AS highest FROM looked_at) AS l
LEFT JOIN LATERAL (
    SELECT a.segment_id, a.log_offset, a.size, h.check_times
    FROM looked_at AS a
    LEFT JOIN LATERAL (
        SELECT d.check_times FROM half_message AS d
        WHERE d.transaction_id = a.transaction_id
        LIMIT 1
    ) AS h ON true
    WHERE a.transaction_id IS NOT NULL
    ORDER BY a.log_offset
    LIMIT %(max_rows)s
) AS half ON true
ORDER BY half.log_offset
