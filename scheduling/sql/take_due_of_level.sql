-- Read the entries of a level's queue that are due, in order, from the scheduler's position on. The caller holds the lock
-- of that position. A delivery time later than now + the level's delay is corrected to now: the levels were shortened, or
-- a clock was set back (RocketMQ's correctDeliverTimestamp).
SELECT
    c.queue_offset, c.tags_code AS due_ms, c.log_segment, c.log_offset, c.reconsume_times, c.real_topic_id,
    c.real_queue_id, c.real_tags_code
FROM consume_queue AS c
WHERE
    c.topic_id = %(topic_id)s AND c.queue_id = %(queue_id)s AND c.queue_offset >= %(from_offset)s
ORDER BY c.queue_offset
LIMIT %(max_entries)s
