-- Name this database among all: an increment goes on from an export of the same one only. A replica has the same name.
SELECT s.system_identifier || '/' || d.oid AS name
FROM pg_control_system() AS s
INNER JOIN pg_database AS d ON d.datname = current_database()
