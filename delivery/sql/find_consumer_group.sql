-- Find a consumer group by its name.
SELECT id, name, start_at, ordered, queue_order, fair_by, limits, max_reconsume_times, retry_policy, paused
FROM consumer_group
WHERE name = %(name)s
