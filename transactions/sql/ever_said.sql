-- Tell how many operation ids were ever given out. Those of failed writes are among them; dropped segments change nothing.
SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END AS operations
FROM operation_id AS s
