-- End the sessions in this database of runs that move topics, all but this one: the run that they belong to changes nothing any
-- more. Rows that are read are the server's own.
SELECT a.pid, pg_terminate_backend(a.pid) AS is_asked
FROM pg_stat_activity AS a
WHERE
    a.datname = current_database() AND a.application_name = %(mover)s AND NOT a.pid = any(%(own)s::integer [])
    AND a.pid <> pg_backend_pid() AND pg_has_role(a.usesysid, 'USAGE')
