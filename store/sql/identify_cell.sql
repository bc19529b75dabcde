-- Read which cell this database is, whether it is fenced, and for too long, and what it had that has left it. One row.
SELECT
    cell_id, epoch, fenced_until IS NOT NULL AS is_fenced, coalesce(fenced_until < now(), false) AS is_over,
    departed, departed_queues
FROM cell_identity
