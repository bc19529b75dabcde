-- Delete all but the latest exports, so that a folder to which an export was written only once does not keep its row
-- for ever. A folder for which retention waits is exported to regularly, so its row is among the latest.
DELETE FROM export
WHERE target NOT IN (SELECT e.target FROM export AS e ORDER BY e.finished_at DESC LIMIT %(max_rows)s)
