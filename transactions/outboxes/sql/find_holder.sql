-- In a source: find the session that holds the turn, if the server shows this session to the broker's role.
SELECT
    l.pid,
    coalesce(a.usename::text, '') AS role
FROM mqbroker_outbox_state AS s
INNER JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.transactionid = s.xmax AND l.granted
LEFT JOIN pg_stat_activity AS a ON l.pid = a.pid
LIMIT 1
