-- In a source: what waits, counted up to a limit, and since when the first does.
SELECT
    count(*) AS waiting,
    min(w.created_at) AS oldest_at
FROM (
    SELECT o.created_at
    FROM mqbroker_outbox AS o
    ORDER BY o.seq
    LIMIT %(max_count)s
) AS w
