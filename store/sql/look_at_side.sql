-- Read which server and database this is, and whether the server is a standby. A server and its standbys have the same
-- numbers in their control file.
-- Row: The server and database of a side. A server and its standbys have the same system identifier.
SELECT
    c.system_identifier, pg_is_in_recovery() AS is_standby, current_database() AS database,
    has_function_privilege('pg_promote(boolean, integer)', 'execute') AS may_promote, i.cell_id, i.epoch, i.installation,
    i.fenced_until IS NOT NULL AS is_fenced, i.departed, i.departed_queues,
    (
        SELECT count(*) FROM pg_attribute AS a
        INNER JOIN pg_class AS t ON a.attrelid = t.oid
        WHERE t.relnamespace = 'public'::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
    ) AS columns
FROM cell_identity AS i
CROSS JOIN pg_control_system() AS c
