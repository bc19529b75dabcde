-- Record the figures of a minute, unless another process has recorded a minute since the counters were read; delete old
-- figures. A process that was frozen before this statement finds newer counters, and records nothing.
WITH claimed AS (
    INSERT INTO history_counters (single, recorded_at, counters)
    VALUES (true, %(read_at)s, %(counters)s::jsonb)
    ON CONFLICT (single) DO UPDATE SET recorded_at = excluded.recorded_at, counters = excluded.counters
    WHERE history_counters.recorded_at IS NOT DISTINCT FROM %(recorded_at)s::timestamptz
    RETURNING recorded_at
),

forgotten AS (
    DELETE FROM history_figure
    WHERE minute < now() - make_interval(days => %(days)s::integer) AND EXISTS (SELECT FROM claimed)
)

INSERT INTO history_figure (figure, name, minute, value)
SELECT f.figure, f.name, date_trunc('minute', c.recorded_at), f.value
FROM claimed AS c
CROSS JOIN unnest(%(figure)s::text [], %(name)s::text [], %(value)s::float8 []) AS f (figure, name, value)
WHERE f.figure <> ''
ON CONFLICT DO NOTHING
