-- Find when the next timer is due, with the database's time beside it.
SELECT min(due_at) AS due_at, clock_timestamp() AS now
FROM timer
