-- Read figures of a period that ends now, of the whole broker or of one name, in steps of equal length. `step` counts
-- back from the latest step, 0.
-- Row: A figure within one step of time, counted back from the latest, 0.
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
