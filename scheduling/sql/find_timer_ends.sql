-- Find the due time of the next timer and the store time of the oldest, which has the lowest id, by one index probe for
-- each; no rows are counted.
-- Row: The due time of the next timer, the store time of the oldest, each None without timers; the database's time.
-- Null: next_due_at, oldest_at.
SELECT
    (
        SELECT t.due_at
        FROM timer AS t
        ORDER BY t.due_at, t.id
        LIMIT 1
    ) AS next_due_at,
    (
        SELECT m.stored_at
        FROM (SELECT t.log_segment, t.log_offset FROM timer AS t ORDER BY t.id LIMIT 1) AS first
        CROSS JOIN LATERAL (
            SELECT l.stored_at FROM commit_log AS l
            WHERE l.segment_id = first.log_segment AND l.log_offset = first.log_offset
            LIMIT 1
        ) AS m
    ) AS oldest_at,
    clock_timestamp() AS now
