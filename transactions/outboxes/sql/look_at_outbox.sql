-- In a source: count the waiting rows, up to a limit, and read for how many seconds the first row has waited, if its
-- time is valid. The seconds are by the source's own clock, which may differ from the broker's; they are null without a
-- row, and negative for a time in the future. Also read whether the table has the sequence by which producers see that
-- the drain is awake: a table of an earlier docs/sql.md lacks it.
SELECT
    count(*) AS waiting,
    extract(
        EPOCH FROM clock_timestamp()
        - min(w.created_at) FILTER (WHERE w.created_at BETWEEN '2000-01-01' AND '9999-01-01')
    )::double precision AS waited_seconds,
    to_regclass('mqbroker_outbox_awake') IS NULL AS is_outdated
FROM (
    SELECT o.created_at
    FROM mqbroker_outbox AS o
    ORDER BY o.seq
    LIMIT %(max_count)s
) AS w
