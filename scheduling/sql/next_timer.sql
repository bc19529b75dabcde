-- Find when the next timer is due, and the database's time.
-- Row: The due time of the next timer, None without timers, and the database's time.
-- Null: due_at.
SELECT (SELECT t.due_at FROM timer AS t ORDER BY t.due_at LIMIT 1) AS due_at, clock_timestamp() AS now
