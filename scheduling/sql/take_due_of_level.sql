-- Read the entries of a level's queue that are due, in order, from the scheduler's position on. The caller holds the lock
-- of that position. The database's time is read with each of them, and so after it was stored: the caller judges by it
-- whether a delivery is further off than the level's delay, which by the time of its own beginning it may seem to be.
SELECT
    c.queue_offset, c.tags_code AS due_ms, c.log_segment, c.log_offset, c.reconsume_times, c.real_topic_id,
    c.real_queue_id, c.real_tags_code, clock_timestamp() AS now
FROM consume_queue AS c
WHERE
    c.topic_id = %(topic_id)s AND c.queue_id = %(queue_id)s AND c.queue_offset >= %(from_offset)s
ORDER BY c.queue_offset
LIMIT %(max_entries)s
