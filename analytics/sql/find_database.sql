-- The unique name of this database: an increment may only continue an export of the same database. A replica has the
-- same name.
SELECT s.system_identifier || '/' || d.oid AS name
FROM pg_control_system() AS s
INNER JOIN pg_database AS d ON d.datname = current_database()
