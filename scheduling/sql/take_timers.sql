-- Take timers that are due: this delete releases each of them, once. Rows that another process is taking or that are just
-- recalled are skipped.
WITH due AS (
    SELECT t.id
    FROM timer AS t
    WHERE t.due_at <= clock_timestamp()
    ORDER BY t.due_at, t.id
    LIMIT %(max_timers)s
    FOR UPDATE SKIP LOCKED
)

DELETE FROM timer AS t
USING due
WHERE t.id = due.id
RETURNING
    t.id, t.due_at, t.message_id, t.log_segment, t.log_offset, t.topic_id, t.queue_id, t.tags_code, t.reconsume_times
