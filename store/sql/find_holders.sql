-- Find the sessions that hold the locks for which a session waits. If such a session itself waits for a lock, the
-- session that holds that lock is found instead, and so on. Changes nothing.
-- Row: A session that holds a lock, and its `application_name`.
WITH RECURSIVE line (pid) AS (
    SELECT unnest(pg_blocking_pids(%(pid)s::integer))
    UNION
    SELECT unnest(pg_blocking_pids(line.pid)) FROM line
)

SELECT a.pid, a.application_name AS application
FROM line
INNER JOIN pg_stat_activity AS a ON line.pid = a.pid
WHERE a.wait_event_type IS DISTINCT FROM 'Lock'
ORDER BY a.pid
LIMIT %(max_rows)s
