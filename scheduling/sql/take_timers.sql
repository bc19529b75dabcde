-- Delete timers that are due: the delete releases each of them, once. Timers that another process is releasing or
-- recalling are skipped. The database's time is a parameter, because a volatile function cannot bound the index scan:
-- every timer would be read. The ids are passed as an array and not joined, so that no plan can scan all timers.
-- Row: A timer that was deleted because it is due, and the database's time at the delete.
-- Null: message_id.
DELETE FROM timer AS t
WHERE t.id = any(array(
    SELECT due.id
    FROM timer AS due
    WHERE due.due_at <= %(now)s
    ORDER BY due.due_at, due.id
    LIMIT %(max_timers)s
    FOR UPDATE SKIP LOCKED
))
RETURNING
    t.id, t.due_at, t.message_id, t.log_segment, t.log_offset, t.topic_id, t.queue_id, t.tags_code, t.reconsume_times,
    clock_timestamp() AS now
