-- In a source: what waits, counted up to a limit, and since when the first does, as far as its time can be read.
SELECT
    count(*) AS waiting,
    min(w.created_at) FILTER (WHERE w.created_at BETWEEN '2000-01-01' AND '9999-01-01') AS oldest_at
FROM (
    SELECT o.created_at
    FROM mqbroker_outbox AS o
    ORDER BY o.seq
    LIMIT %(max_count)s
) AS w
