-- Find the timers whose messages lie in the leaving segment or an older one, among the `max_timers` timers after an id.
-- Also returns the last id that was read, or null if no timer is left, so that a million timers are scanned in short
-- steps.
-- Row: A step of the scan for timers in the leaving segment: the last id that was read (None: the end), and the found
-- ids.
-- Null: last_id.
SELECT
    (array_agg(w.id ORDER BY w.id DESC))[1] AS last_id,
    coalesce(array_agg(w.id ORDER BY w.id) FILTER (WHERE w.log_segment <= %(leaving_id)s), '{}') AS old
FROM (
    SELECT t.id, t.log_segment
    FROM timer AS t
    WHERE t.id > %(after_id)s::uuid
    ORDER BY t.id
    LIMIT %(max_timers)s
) AS w
