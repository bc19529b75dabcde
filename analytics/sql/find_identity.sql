-- Read which cell of which installation this database is: one row.
-- Row: The installation of a database, and its cell there.
SELECT cell_id, installation::text AS installation
FROM cell_identity
