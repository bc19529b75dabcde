-- In a source: count the waiting rows, up to a limit, and read the time of the first, if it is valid.
SELECT
    count(*) AS waiting,
    min(w.created_at) FILTER (WHERE w.created_at BETWEEN '2000-01-01' AND '9999-01-01') AS oldest_at
FROM (
    SELECT o.created_at
    FROM mqbroker_outbox AS o
    ORDER BY o.seq
    LIMIT %(max_count)s
) AS w
