-- Move schedules on to their next times, and insert firings for the earlier times, each with the schedule's current
-- message. A schedule that another process has moved or an operator has changed is skipped, so each time is decided
-- once.
WITH given AS (
    SELECT g.id, g.version, g.was_at, g.next_at
    FROM unnest(
        %(schedule_id)s::bigint [], %(version)s::integer [], %(was_at)s::timestamptz [], %(next_at)s::timestamptz []
    ) AS g (id, version, was_at, next_at)
),

times AS (
    SELECT f.id, f.schedule_id, f.fire_at
    FROM unnest(%(firing_id)s::uuid [], %(firing_of)s::bigint [], %(fire_at)s::timestamptz []) AS f (id, schedule_id, fire_at)
),

standing AS (
    SELECT s.id, given.next_at
    FROM schedule AS s
    INNER JOIN given ON s.id = given.id
    WHERE NOT s.paused AND s.version = given.version AND s.next_at = given.was_at
    ORDER BY s.id
    FOR NO KEY UPDATE OF s SKIP LOCKED
),

moved AS (
    UPDATE schedule AS s
    SET
        next_at = standing.next_at,
        last_at = coalesce((SELECT max(t.fire_at) FROM times AS t WHERE t.schedule_id = s.id), s.last_at),
        fired = s.fired + (SELECT count(*) FROM times AS t WHERE t.schedule_id = s.id)
    FROM standing
    WHERE s.id = standing.id
    RETURNING s.id, s.name, s.message || s.body AS message
)

INSERT INTO schedule_firing (id, schedule_id, name, message, fire_at)
SELECT times.id, moved.id, moved.name, moved.message, times.fire_at
FROM times
INNER JOIN moved ON times.schedule_id = moved.id
ON CONFLICT (id) DO NOTHING
RETURNING schedule_firing.id
