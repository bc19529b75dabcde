-- End the sessions in this database of other runs that move topics, so that these runs change nothing any more. Reads
-- only views of the server.
SELECT a.pid, pg_terminate_backend(a.pid) AS is_asked
FROM pg_stat_activity AS a
WHERE
    a.datname = current_database() AND a.application_name = %(mover)s AND NOT a.pid = any(%(own)s::integer [])
    AND a.pid <> pg_backend_pid() AND pg_has_role(a.usesysid, 'USAGE')
