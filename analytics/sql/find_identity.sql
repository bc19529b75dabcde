-- Read which cell of which installation this database is: one row.
-- Row: Which cell of which installation a database is.
SELECT cell_id, installation::text AS installation
FROM cell_identity
