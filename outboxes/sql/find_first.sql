-- In a source: the first row that waits, but for topics that take none now, and whether producers notify. Without a row of
-- the state there is no turn to take.
SELECT
    s.asleep,
    o.slot,
    o.seq
FROM mqbroker_outbox_state AS s
LEFT JOIN LATERAL (
    SELECT
        w.slot,
        w.seq
    FROM mqbroker_outbox AS w
    WHERE w.topic <> ALL(%(closed)s::text [])
    ORDER BY w.seq
    LIMIT 1
) AS o ON true
LIMIT 1
