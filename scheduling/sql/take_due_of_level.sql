-- Read the next entries of a level's queue, in order, from the scheduler's next offset. The caller holds the lock of
-- that offset. The database's time is read with each entry, and so after the entry was stored: compared with the time
-- at which the transaction began, a delivery could seem further off than the level's delay.
SELECT
    c.queue_offset, c.tags_code AS due_ms, c.log_segment, c.log_offset, c.reconsume_times, c.real_topic_id,
    c.real_queue_id, c.real_tags_code, clock_timestamp() AS now
FROM consume_queue AS c
WHERE
    c.topic_id = %(topic_id)s AND c.queue_id = %(queue_id)s AND c.queue_offset >= %(from_offset)s
ORDER BY c.queue_offset
LIMIT %(max_entries)s
