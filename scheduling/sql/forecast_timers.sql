-- Forecast the deliveries of timers in each of the coming minutes by counting the timers that are due next, up to a
-- limit. Where the limit is reached, the caller estimates the minutes after it.
-- Row: The timers that become due in one of the coming minutes, and the timers counted in all minutes together.
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
