-- Find the timers that a message waits for, wherever it lies in the log, the first due first.
SELECT due_at, topic_id, queue_id, reconsume_times
FROM timer
WHERE log_offset = any(%(log_offsets)s::bigint [])
ORDER BY due_at
LIMIT %(max_timers)s
