-- Count the operation ids that were ever taken from their sequence: those of failed writes are among them, and dropped
-- segments change nothing.
SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END AS operations
FROM operation_id AS s
