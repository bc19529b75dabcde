-- In a source: find the session or prepared transaction that holds the turn, if the server shows it to the broker's
-- role.
SELECT
    'mqbroker_outbox_state' AS relation,
    l.pid,
    coalesce(a.usename::text, p.owner::text, '') AS role,
    coalesce(p.gid, '') AS prepared
FROM mqbroker_outbox_state AS s
INNER JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.transactionid = s.xmax AND l.granted
LEFT JOIN pg_stat_activity AS a ON l.pid = a.pid
LEFT JOIN pg_prepared_xacts AS p ON l.pid IS NULL AND p.transaction = l.transactionid
LIMIT 1
