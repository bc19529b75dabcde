-- Delete firings whose messages are stored or refused, and set or clear the failure of their schedules. `failed_at` is
-- the first failure since the last success or change. A refused firing is subtracted from `fired`; a firing that a limit
-- delays may be taken again by the next tick. Rows are locked in id order, so that two processes do not deadlock.
WITH settled AS (
    DELETE FROM schedule_firing AS f
    WHERE f.id = ANY(%(id)s::uuid [])
),

limited AS (
    UPDATE schedule_firing AS f
    SET taken_at = clock_timestamp() - INTERVAL '1 hour'
    WHERE f.id = ANY(%(again)s::uuid [])
),

noted AS (
    SELECT s.id, n.failure, n.refused
    FROM unnest(%(schedule_id)s::bigint [], %(failure)s::text [], %(refused)s::bigint []) AS n (id, failure, refused)
    INNER JOIN schedule AS s ON n.id = s.id
    WHERE n.failure IS NOT NULL OR s.failure IS NOT NULL
    ORDER BY s.id
    FOR NO KEY UPDATE OF s
)

UPDATE schedule AS s
SET
    failure = noted.failure,
    failed_at = CASE WHEN noted.failure IS NOT NULL THEN coalesce(s.failed_at, now()) END,
    fired = s.fired - noted.refused
FROM noted
WHERE s.id = noted.id
