-- Find, for each window of the last seconds, its first log offset; and the next log offset. Offsets rise with time,
-- except where transactions overlap for a moment, so halving the range finds the offset with some thirty index probes;
-- an index on the time would cost every write. In a cell that was split off, copies of the parent's messages do not
-- count.
-- Row: The log offsets of the last `seconds`: from `since_offset` to `next_offset`, excluding `next_offset`.
WITH RECURSIVE windows AS (
    SELECT
        w.seconds, now() - make_interval(secs => w.seconds) AS since,
        greatest((SELECT c.log_offset FROM commit_log AS c ORDER BY c.log_offset LIMIT 1), own.first, 0) AS low,
        greatest((SELECT c.log_offset + 1 FROM commit_log AS c ORDER BY c.log_offset DESC LIMIT 1), own.first, 0) AS high
    FROM unnest(%(seconds)s::integer []) AS w (seconds)
    CROSS JOIN (SELECT (i.first_numbers ->> 'commit_log_offset')::bigint AS first FROM cell_identity AS i) AS own
),

halving AS (
    SELECT w.seconds, w.since, w.low, w.high FROM windows AS w
    UNION ALL
    SELECT
        h.seconds, h.since,
        CASE WHEN probe.stored_at < h.since THEN probe.log_offset + 1 ELSE h.low END,
        CASE WHEN probe.stored_at < h.since THEN h.high ELSE (h.low + h.high) / 2 END
    FROM halving AS h
    CROSS JOIN LATERAL (
        SELECT c.log_offset, c.stored_at
        FROM commit_log AS c
        WHERE c.log_offset >= (h.low + h.high) / 2
        ORDER BY c.log_offset
        LIMIT 1
    ) AS probe
    WHERE h.low < h.high
)

SELECT w.seconds, w.low AS lowest, h.low AS since_offset, w.high AS next_offset
FROM windows AS w
INNER JOIN halving AS h ON w.seconds = h.seconds AND h.low >= h.high
