-- In a source: name the session or prepared transaction that holds the turn, and the statement that ends it, if the
-- server shows it to the broker's role.
SELECT coalesce(
    'the prepared transaction ' || quote_literal(p.gid) || ' of the role ' || p.owner || ': COMMIT PREPARED '
    || quote_literal(p.gid) || ' or ROLLBACK PREPARED ' || quote_literal(p.gid),
    'pid ' || l.pid || coalesce(' of the role ' || a.usename, '') || ': have it commit, or SELECT pg_terminate_backend('
    || l.pid || ')'
)
FROM mqbroker_outbox_state AS s
INNER JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.transactionid = s.xmax AND l.granted
LEFT JOIN pg_stat_activity AS a ON l.pid = a.pid
LEFT JOIN pg_prepared_xacts AS p ON l.pid IS NULL AND p.transaction = l.transactionid
LIMIT 1
