-- Let PostgreSQL estimate from its statistics how many timers are due in one of the coming minutes; none is read.
EXPLAIN (FORMAT JSON)
SELECT 1
FROM timer
WHERE
    due_at > now() + make_interval(mins => %(minute)s::integer - 1)
    AND due_at <= now() + make_interval(mins => %(minute)s::integer)
