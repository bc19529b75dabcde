-- Take firings to send them: first firings that no process took and that have waited for late_seconds, then firings
-- that a process took and did not settle within taken_seconds. So firings that have to wait do not delay new firings.
-- Row: A firing that this process has taken to send its message.
-- Types: message dict[str, Any].
WITH free AS (
    SELECT f.id
    FROM schedule_firing AS f
    WHERE
        (f.taken_at IS NULL AND f.decided_at <= clock_timestamp() - make_interval(secs => %(late_seconds)s))
        OR f.taken_at < clock_timestamp() - make_interval(secs => %(taken_seconds)s)
    ORDER BY f.taken_at IS NOT NULL, f.fire_at
    LIMIT %(max_rows)s
    FOR NO KEY UPDATE SKIP LOCKED
)

UPDATE schedule_firing AS f
SET taken_at = clock_timestamp()
FROM free
WHERE f.id = free.id
RETURNING f.id, f.schedule_id, f.name, f.message, f.fire_at, clock_timestamp() AS now
