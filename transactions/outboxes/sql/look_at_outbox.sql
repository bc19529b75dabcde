-- In a source: count the waiting rows, up to a limit, and read the time of the first, if it is valid. A table of an
-- earlier docs/sql.md has no sequence by which producers see that the drain is awake.
SELECT
    count(*) AS waiting,
    min(w.created_at) FILTER (WHERE w.created_at BETWEEN '2000-01-01' AND '9999-01-01') AS oldest_at,
    to_regclass('mqbroker_outbox_awake') IS NULL AS is_outdated
FROM (
    SELECT o.created_at
    FROM mqbroker_outbox AS o
    ORDER BY o.seq
    LIMIT %(max_count)s
) AS w
