-- Forecast what timers deliver in each of the coming minutes, from the timers that are due next, to a limit: where that is
-- reached, the caller estimates the minutes behind it.
SELECT
    greatest(ceil(extract(EPOCH FROM due.due_at - now()) / 60), 1)::integer AS minute,
    count(*) AS deliveries,
    sum(count(*)) OVER () AS counted
FROM (
    SELECT t.due_at
    FROM timer AS t
    WHERE t.due_at <= now() + make_interval(mins => %(minutes)s::integer)
    ORDER BY t.due_at
    LIMIT %(max_counted)s
) AS due
GROUP BY minute
ORDER BY minute
