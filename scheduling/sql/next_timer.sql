-- Find when the next timer is due, and the database's time.
-- Row: The due time of the next timer, None without timers, and the database's time.
-- Null: due_at.
SELECT min(due_at) AS due_at, clock_timestamp() AS now
FROM timer
