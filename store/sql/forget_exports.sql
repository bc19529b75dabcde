-- Delete all but the latest exports, so that folders that were exported to once do not leave rows for ever. A folder
-- for which retention waits is exported to regularly, so its row is among the latest.
DELETE FROM export
WHERE target NOT IN (SELECT e.target FROM export AS e ORDER BY e.finished_at DESC LIMIT %(max_rows)s)
