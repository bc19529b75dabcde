-- Find when the next timer is due, and the database's time.
SELECT min(due_at) AS due_at, clock_timestamp() AS now
FROM timer
