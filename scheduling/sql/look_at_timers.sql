-- Look at the timers by their ends, an index probe each: the one that is due next, and the one that waits longest, which
-- has the lowest id. No row is counted.
SELECT
    (
        SELECT t.due_at
        FROM timer AS t
        ORDER BY t.due_at, t.id
        LIMIT 1
    ) AS next_due_at,
    (
        SELECT m.stored_at
        FROM timer AS t
        INNER JOIN commit_log AS m ON t.log_segment = m.segment_id AND t.log_offset = m.log_offset
        ORDER BY t.id
        LIMIT 1
    ) AS oldest_at,
    clock_timestamp() AS now
