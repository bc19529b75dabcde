-- Read the counters of the latest recorded minute, and the seconds since that minute. Most looks find that another
-- process has recorded the current minute, and `is_due` is false.
-- Row: The counters of the latest minute that was recorded, as JSON; `is_due`: a later minute has begun.
-- Null: recorded_at, counters, seconds.
SELECT
    now() AS read_at,
    c.recorded_at,
    c.counters::text AS counters,
    extract(EPOCH FROM now() - c.recorded_at)::float8 AS seconds,
    c.recorded_at IS NULL OR date_trunc('minute', c.recorded_at) < date_trunc('minute', now()) AS is_due
FROM (VALUES (true)) AS one (single)
LEFT JOIN history_counters AS c USING (single)
