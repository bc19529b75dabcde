-- Read which cell this database is.
SELECT cell_id, epoch
FROM cell_identity
