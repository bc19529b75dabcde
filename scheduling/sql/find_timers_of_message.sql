-- Find the timers that a message waits in, at any of its log offsets, the first due first. MATERIALIZED makes
-- PostgreSQL find the rows by index before it sorts them.
-- Row: A timer that a message, or a retry of it, waits in.
WITH found AS MATERIALIZED (
    SELECT t.due_at, t.topic_id, t.queue_id, t.reconsume_times
    FROM timer AS t
    WHERE t.log_offset = any(%(log_offsets)s::bigint [])
)

SELECT f.due_at, f.topic_id, f.queue_id, f.reconsume_times
FROM found AS f
ORDER BY f.due_at
LIMIT %(max_timers)s
