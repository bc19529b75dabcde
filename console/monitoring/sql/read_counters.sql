-- The counters of the latest minute of the history, and the time since. Nothing is read before a minute of the clock has
-- begun that is not recorded: most of the looks find that another process has recorded it.
SELECT
    now() AS read_at,
    c.recorded_at,
    c.counters::text AS counters,
    extract(EPOCH FROM now() - c.recorded_at)::float8 AS seconds,
    c.recorded_at IS NULL OR date_trunc('minute', c.recorded_at) < date_trunc('minute', now()) AS is_due
FROM (VALUES (true)) AS one (single)
LEFT JOIN history_counters AS c USING (single)
