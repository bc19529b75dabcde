-- Read which cell this database is, whether a fence has stood for too long, and what it had that has left it. One row.
SELECT cell_id, epoch, coalesce(fenced_until < now(), false) AS is_over, departed, departed_queues
FROM cell_identity
