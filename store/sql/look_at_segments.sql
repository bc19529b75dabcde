-- Read the open segment: how long it has been open by the database's clock, how many messages it holds at most (from
-- the first and last offset of its log, two index probes) and which next segment is ready.
-- Row: The age and size of the open segment, and the next segment if it is ready.
-- Null: ready_id.
SELECT
    s.id,
    extract(EPOCH FROM clock_timestamp() - s.opened_at)::double precision / 3600 AS open_hours,
    coalesce(newest.log_offset - oldest.log_offset + 1, 0) AS messages,
    (SELECT min(r.id) FROM segment AS r WHERE r.state = 'ready') AS ready_id
FROM segment AS s
LEFT JOIN LATERAL (
    SELECT c.log_offset
    FROM commit_log AS c
    WHERE c.segment_id = s.id
    ORDER BY c.log_offset
    LIMIT 1
) AS oldest ON true
LEFT JOIN LATERAL (
    SELECT c.log_offset
    FROM commit_log AS c
    WHERE c.segment_id = s.id
    ORDER BY c.log_offset DESC
    LIMIT 1
) AS newest ON true
WHERE s.state = 'open'
