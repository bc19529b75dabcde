-- Count the sessions of this server by application and state, with the server's limit.
-- Row: The number of connections of an application in one state, and the server's limit for all connections.
SELECT
    coalesce(nullif(a.application_name, ''), 'unnamed') AS application, coalesce(a.state, 'background') AS state,
    count(*) AS connections, current_setting('max_connections')::integer AS max_connections
FROM pg_stat_activity AS a
WHERE a.backend_type = 'client backend'
GROUP BY application, a.state
ORDER BY connections DESC, application
LIMIT %(max_rows)s
