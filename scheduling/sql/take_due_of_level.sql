-- Read the next entries of a level's queue, in order, from the scheduler's next offset. The caller holds the lock of
-- the scheduler's progress. Each row has the database's time, read after the entry was stored: by the earlier time at
-- which the transaction began, a due time could seem further ahead than the level's delay.
-- Row: The next entry of a level's queue, with its real topic and queue, and the database's time after it was stored.
SELECT
    c.queue_offset, c.tags_code AS due_ms, c.log_segment, c.log_offset, c.reconsume_times, c.real_topic_id,
    c.real_queue_id, c.real_tags_code, clock_timestamp() AS now
FROM consume_queue AS c
WHERE
    c.topic_id = %(topic_id)s AND c.queue_id = %(queue_id)s AND c.queue_offset >= %(from_offset)s
ORDER BY c.queue_offset
LIMIT %(max_entries)s
