-- Find subscriptions with their circuits, except subscriptions that are paused or disabled, or whose topic or group
-- does not exist.
SELECT
    s.id, s.name, s.group_name, g.ordered, s.topic_name, s.filter, s.url, s.max_batch, s.timeout_seconds, s.concurrency,
    s.secret,
    CASE WHEN s.rotated_at > now() - make_interval(hours => %(rotation_hours)s::integer) THEN s.previous_secret END AS previous_secret,
    s.state, s.failures, s.open_until, s.last_success_at, now() AS now
FROM subscription AS s
INNER JOIN consumer_group AS g ON s.group_name = g.name
INNER JOIN topic AS t ON s.topic_name = t.name
WHERE
    s.id = any(%(ids)s::integer [])
    AND NOT s.paused AND NOT g.paused AND s.state <> 'disabled' AND strpos(t.permission, 'r') > 0
