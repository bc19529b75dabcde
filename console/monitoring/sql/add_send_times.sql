-- Add one process's counts of answers to sends to the counts of this minute, per bucket of answer time.
INSERT INTO history_figure (figure, name, minute, value)
SELECT 'send_seconds', f.name, date_trunc('minute', now()), f.value
FROM unnest(%(name)s::text [], %(value)s::float8 []) AS f (name, value)
ON CONFLICT (figure, name, minute) DO UPDATE SET value = history_figure.value + excluded.value
