-- In a source: how many bytes the next rows have, and how many of them are too large.
SELECT
    count(*) AS next_rows,
    coalesce(sum(n.bytes) FILTER (WHERE n.bytes <= %(max_row_bytes)s), 0)::bigint AS bytes,
    count(*) FILTER (WHERE n.bytes > %(max_row_bytes)s) AS large
FROM (
    SELECT o.bytes
    FROM mqbroker_outbox AS o
    ORDER BY o.seq
    LIMIT %(max_rows)s
) AS n
