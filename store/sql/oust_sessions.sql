-- End the broker's sessions in this database, all or some, except the sessions of the run that moves topics, and return
-- the sessions that still exist. A session that is about to begin is not in the list of sessions yet, but holds a lock
-- on the database. It is returned without being ended, because it may have read the database's settings before they
-- were changed; it releases the lock after it is in the list. Reads only views of the server.
-- Row: A session that still exists, and whether the server was asked to end it.
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
