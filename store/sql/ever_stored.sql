-- Read how many log offsets were ever taken. Those of failed writes are among them; dropped segments change nothing.
SELECT CASE WHEN s.is_called THEN s.last_value + 1 ELSE 0 END AS messages
FROM commit_log_offset AS s
