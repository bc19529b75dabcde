-- Read which cell of which installation this database is: one row.
SELECT cell_id, installation::text AS installation
FROM cell_identity
