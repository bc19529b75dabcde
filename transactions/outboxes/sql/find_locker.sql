-- In a source: name a locked table of the outbox with the session or prepared transaction that locks the table or rows
-- in it, and the statement that ends it, if the server shows it to the broker's role. Reads only catalogs, because the
-- tables themselves are locked.
SELECT
    c.relname || ' for some seconds (' || coalesce(
        'the prepared transaction ' || quote_literal(p.gid) || ' of the role ' || p.owner || ': COMMIT PREPARED '
        || quote_literal(p.gid) || ' or ROLLBACK PREPARED ' || quote_literal(p.gid),
        'pid ' || l.pid || coalesce(' of the role ' || a.usename, '') || ': have it commit, or SELECT '
        || 'pg_terminate_backend(' || l.pid || ')',
        'a prepared transaction: see pg_prepared_xacts'
    ) || ')'
FROM pg_locks AS l
INNER JOIN pg_class AS c ON l.relation = c.oid
INNER JOIN pg_namespace AS n ON c.relnamespace = n.oid
LEFT JOIN pg_stat_activity AS a ON l.pid = a.pid
-- A prepared transaction has no pid; it also holds the lock of its own number.
LEFT JOIN pg_locks AS x
    ON
        l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid' AND x.granted
        AND l.virtualtransaction = x.virtualtransaction
LEFT JOIN pg_prepared_xacts AS p ON x.transactionid = p.transaction
WHERE
    n.nspname = %(schema)s AND c.relname LIKE 'mqbroker\_outbox%%' AND l.locktype = 'relation' AND l.granted
    AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
    AND (
        l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        OR (l.mode = 'RowShareLock' AND c.relname <> 'mqbroker_outbox_state')
    )
    AND l.pid IS DISTINCT FROM pg_backend_pid()
ORDER BY (l.mode = 'RowShareLock'), c.relname
LIMIT 1
