-- Find schedules whose next time has come, or comes in so many seconds, the earliest first.
SELECT
    s.id, s.name, s.seed, s.cron, s.time_zone, s.ends_at, s.missed, s.version, s.next_at, clock_timestamp() AS now
FROM schedule AS s
WHERE NOT s.paused AND s.next_at <= clock_timestamp() + make_interval(secs => %(due_seconds)s)
ORDER BY s.next_at
LIMIT %(max_rows)s
