-- Read the unfinished move, and whether a run works at it: each run has a session at the control until its end.
-- No row when no move is under way.
SELECT
    m.id, m.source_id, m.source_name, m.target_id, m.target_name, m.by_hand, m.step, m.error, m.started_at,
    extract(EPOCH FROM clock_timestamp() - m.started_at)::float8 AS seconds,
    EXISTS (
        SELECT 1 FROM pg_stat_activity AS a
        WHERE a.datname = current_database() AND a.application_name = %(mover)s AND a.pid <> pg_backend_pid()
    ) AS has_run
FROM move AS m
WHERE m.running
