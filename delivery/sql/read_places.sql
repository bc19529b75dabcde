-- Read what an ordered group has in flight, held or parked in some queues, in order. The caller holds the lock of the
-- group's positions there, so nobody hands out meanwhile; the database says whose time has come.
SELECT
    r.topic_id, r.queue_id, r.queue_offset, r.state, r.expires_at > now() AS waits, r.sharding_key,
    r.log_segment AS segment_id, r.log_offset, r.tags_code, r.reconsume_times
FROM receipt AS r
INNER JOIN unnest(%(topic_id)s::integer [], %(queue_id)s::integer []) AS q (topic_id, queue_id)
    ON r.topic_id = q.topic_id AND r.queue_id = q.queue_id
WHERE r.group_id = %(group_id)s
ORDER BY r.topic_id, r.queue_id, r.queue_offset
LIMIT %(max_places)s
