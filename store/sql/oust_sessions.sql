-- End the broker's sessions in this database, all or some of them, and name those that are still there; those of the run that
-- moves topics stay. A session that is about to begin is in no list of sessions yet, but holds a lock on the database: it is
-- named without an end, for it may have read the database's settings before they were changed. It lets go of the lock behind
-- its entry in the list. Rows that are read are the server's own.
SELECT a.pid, pg_terminate_backend(a.pid) AS is_asked
FROM pg_stat_activity AS a
WHERE
    a.datname = current_database() AND a.backend_type = 'client backend' AND a.application_name <> %(mover)s
    AND a.pid <> pg_backend_pid() AND pg_has_role(a.usesysid, 'USAGE')
    AND a.backend_start < coalesce(%(before)s::timestamptz, 'infinity')
    AND (%(pids)s::integer [] IS NULL OR a.pid = any(%(pids)s::integer []))
UNION ALL
SELECT l.pid, false AS is_asked
FROM pg_locks AS l
INNER JOIN pg_database AS d ON l.objid = d.oid AND d.datname = current_database()
WHERE
    l.locktype = 'object' AND l.classid = 'pg_database'::regclass AND l.pid <> pg_backend_pid()
    AND (%(pids)s::integer [] IS NULL OR l.pid = any(%(pids)s::integer []))
