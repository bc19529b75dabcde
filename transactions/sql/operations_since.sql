-- Find, for each window of the last seconds, the id of its first operation, and the next id, by halving the range of
-- ids, which rise with the time of the decision. In a cell that was split off, copies of the parent's operations do not
-- count.
-- Row: The operations of a window: ids from `since_id` on, below `next_id`. `lowest` is the first id that is kept.
WITH RECURSIVE windows AS (
    SELECT
        w.seconds, now() - make_interval(secs => w.seconds) AS since,
        greatest((SELECT o.operation_id FROM operation AS o ORDER BY o.operation_id LIMIT 1), own.first, 0) AS low,
        greatest((SELECT o.operation_id + 1 FROM operation AS o ORDER BY o.operation_id DESC LIMIT 1), own.first, 0) AS high
    FROM unnest(%(seconds)s::integer []) AS w (seconds)
    CROSS JOIN (SELECT (i.first_numbers ->> 'operation_id')::bigint AS first FROM cell_identity AS i) AS own
),

halving AS (
    SELECT w.seconds, w.since, w.low, w.high FROM windows AS w
    UNION ALL
    SELECT
        h.seconds, h.since,
        CASE WHEN probe.decided_at < h.since THEN probe.operation_id + 1 ELSE h.low END,
        CASE WHEN probe.decided_at < h.since THEN h.high ELSE (h.low + h.high) / 2 END
    FROM halving AS h
    CROSS JOIN LATERAL (
        SELECT o.operation_id, o.decided_at
        FROM operation AS o
        WHERE o.operation_id >= (h.low + h.high) / 2
        ORDER BY o.operation_id
        LIMIT 1
    ) AS probe
    WHERE h.low < h.high
)

SELECT w.seconds, w.since, w.low AS lowest, h.low AS since_id, w.high AS next_id
FROM windows AS w
INNER JOIN halving AS h ON w.seconds = h.seconds AND h.low >= h.high
