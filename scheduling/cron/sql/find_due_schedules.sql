-- Find schedules whose next time has come, or comes within due_seconds, the earliest first; except schedules that have
-- max_waiting firings which are not sent yet.
-- Row: A schedule whose next time has come, or comes soon, and the database's time.
-- Null: ends_at.
SELECT
    s.id, s.name, s.seed, s.cron, s.time_zone, s.ends_at, s.missed, s.version, s.next_at, clock_timestamp() AS now
FROM schedule AS s
WHERE
    NOT s.paused AND s.next_at <= clock_timestamp() + make_interval(secs => %(due_seconds)s)
    AND %(max_waiting)s > (
        SELECT count(*)
        FROM (SELECT FROM schedule_firing AS f WHERE f.schedule_id = s.id LIMIT %(max_waiting)s) AS w
    )
ORDER BY s.next_at
LIMIT %(max_rows)s
