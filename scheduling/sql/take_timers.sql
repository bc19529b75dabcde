-- Take timers that are due: this delete releases each of them, once. Rows that another process is taking or that are just
-- recalled are skipped. The database's time comes as a parameter: a function that may change would be no bound of the
-- index, and every pending timer were read. An array, not a join: no plan can then go through all of them either.
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
