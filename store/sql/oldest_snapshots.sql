-- Find what pins the oldest snapshots of this database: sessions, prepared transactions and replication slots. No dead
-- row that is newer than the oldest snapshot can be vacuumed. The rows are sorted by age in transactions; the age in
-- seconds is known only for sessions.
-- Row: What pins a snapshot, and for how many transactions and seconds. `seconds` is None for a replication slot.
-- Null: state, seconds.
SELECT p.kind, p.name, p.state, p.transactions, p.seconds
FROM (
    SELECT
        'session' AS kind, coalesce(nullif(a.application_name, ''), 'unnamed') || ', process ' || a.pid AS name, a.state,
        age(coalesce(a.backend_xmin, a.backend_xid))::bigint AS transactions,
        extract(EPOCH FROM now() - a.xact_start)::double precision AS seconds
    FROM pg_stat_activity AS a
    WHERE
        a.datname = current_database() AND a.pid <> pg_backend_pid()
        AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
    UNION ALL
    SELECT
        'prepared transaction', x.gid, 'prepared', age(x.transaction)::bigint,
        extract(EPOCH FROM now() - x.prepared)::double precision
    FROM pg_prepared_xacts AS x
    WHERE x.database = current_database()
    UNION ALL
    SELECT
        'replication slot', s.slot_name::text, CASE WHEN s.active THEN 'active' ELSE 'inactive' END,
        age(coalesce(s.xmin, s.catalog_xmin))::bigint, NULL
    FROM pg_replication_slots AS s
    WHERE s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL
) AS p
ORDER BY p.transactions DESC, p.seconds DESC NULLS LAST
LIMIT %(max_rows)s
