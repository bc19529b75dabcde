-- Forecast the deliveries of the levels in each of the coming minutes. The entries of a level's queue are in the order
-- of their due times, so a binary search finds each minute's end in the waiting part; no row is counted.
-- Row: The entries of a level's queue that become due in one of the coming minutes.
WITH RECURSIVE search AS (
    SELECT
        w.queue_id, w.topic_id, m.minute, w.low AS first, w.low, w.high,
        (extract(EPOCH FROM now()) * 1000)::bigint + m.minute * 60000 AS due_ms
    FROM unnest(
        %(queue_id)s::integer [], %(topic_id)s::integer [], %(low)s::bigint [], %(high)s::bigint []
    ) AS w (queue_id, topic_id, low, high)
    CROSS JOIN generate_series(1, %(minutes)s::integer) AS m (minute)
    WHERE w.low < w.high
    UNION ALL
    SELECT
        s.queue_id, s.topic_id, s.minute, s.first,
        CASE WHEN probe.tags_code >= s.due_ms THEN s.low ELSE (s.low + s.high) / 2 + 1 END,
        CASE WHEN probe.tags_code >= s.due_ms THEN (s.low + s.high) / 2 ELSE s.high END,
        s.due_ms
    FROM search AS s
    LEFT JOIN LATERAL (
        SELECT c.tags_code
        FROM consume_queue AS c
        WHERE c.topic_id = s.topic_id AND c.queue_id = s.queue_id AND c.queue_offset = (s.low + s.high) / 2
        LIMIT 1
    ) AS probe ON true
    WHERE s.low < s.high
)

SELECT
    queue_id, minute,
    low - lag(low, 1, first) OVER (PARTITION BY queue_id ORDER BY minute) AS deliveries
FROM search
WHERE low >= high
ORDER BY queue_id, minute
