-- Forget all but the latest exports, so that folders that are exported to once leave no rows for ever. Retention waits
-- for a folder that is exported to again and again: its row is among the latest.
DELETE FROM export
WHERE target NOT IN (SELECT e.target FROM export AS e ORDER BY e.finished_at DESC LIMIT %(max_rows)s)
