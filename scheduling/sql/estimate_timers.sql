-- Estimate from PostgreSQL's statistics the timers that are due in one of the coming minutes; no row is read.
EXPLAIN (FORMAT JSON)
SELECT 1
FROM timer
WHERE
    due_at > now() + make_interval(mins => %(minute)s::integer - 1)
    AND due_at <= now() + make_interval(mins => %(minute)s::integer)
