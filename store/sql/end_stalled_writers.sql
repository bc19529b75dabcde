-- End sessions of writers whose process has stopped in the middle of sending a transaction. Such a session counts as
-- active and keeps its locks, and before PostgreSQL 17 no time-out of the server ends it. Safe because a transaction
-- without its sync cannot be committed: nothing was stored, and a process that continues finds its connection closed. A
-- session that works does not wait for its client, and a session between two transactions has no xact_start. Each
-- message of the client sets state_change.
-- Row: The session of a stalled writer, and whether the server could end it.
SELECT a.pid, pg_terminate_backend(a.pid) AS is_ended
FROM pg_stat_activity AS a
WHERE
    a.datname = current_database() AND a.usename = current_user AND a.application_name = 'mqbroker-writer'
    AND a.state = 'active' AND a.wait_event = 'ClientRead'
    AND a.xact_start < clock_timestamp() - make_interval(secs => %(seconds)s)
    AND a.state_change < clock_timestamp() - make_interval(secs => %(silent_seconds)s)
LIMIT %(max_rows)s
