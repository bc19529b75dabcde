-- Figures of a stretch of time, of the whole broker or of what one name names, by steps of so many seconds that end now.
-- `step` counts back from the latest, 0.
SELECT
    f.figure,
    f.name,
    floor(extract(EPOCH FROM date_trunc('minute', now()) - f.minute) / %(step_seconds)s)::integer AS step,
    count(*) AS minutes,
    sum(f.value) AS total,
    max(f.value) AS highest
FROM history_figure AS f
WHERE
    (
        (f.figure = ANY(%(figures)s::text []) AND f.name = %(name)s)
        OR f.figure = ANY(%(all_names)s::text [])
    )
    AND f.minute > date_trunc('minute', now()) - make_interval(secs => %(step_seconds)s * %(steps)s::integer)
GROUP BY f.figure, f.name, step
