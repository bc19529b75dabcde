-- Read which cell this database is, whether it is fenced, whether the time of the fence is over, and which topics and
-- queues have left. Returns one row.
-- Row: Which cell a database is, its epoch and fence, and the topics and queues that have left it. `is_over`: the cell
--    is fenced, and the time limit of the fence is over.
SELECT
    cell_id, epoch, fenced_until IS NOT NULL AS is_fenced, coalesce(fenced_until < now(), false) AS is_over,
    departed, departed_queues
FROM cell_identity
