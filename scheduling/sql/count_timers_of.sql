-- Count the timers of some topics, and of some queues of the broker's own topics. Reads only.
SELECT count(*) AS timers
FROM timer
WHERE topic_id = any(%(topics)s::integer []) OR topic_id::bigint << 32 | queue_id = any(%(queues)s::bigint [])
