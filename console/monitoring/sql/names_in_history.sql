-- Find the names for which a figure was recorded since a time.
SELECT f.name
FROM history_figure AS f
WHERE f.figure = ANY(%(figures)s::text []) AND f.minute > now() - make_interval(secs => %(seconds)s) AND f.name <> ''
GROUP BY f.name
ORDER BY f.name
LIMIT %(max_names)s
