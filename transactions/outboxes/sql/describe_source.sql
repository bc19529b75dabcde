-- In a source: find whether producers send notices, and whether this session is the server's own, not a pooler's.
-- Producers cannot send notices if the server allows two-phase transactions, in which PostgreSQL forbids NOTIFY, or if
-- the table has no trigger for notices. A pooler gives its clients invented process ids.
SELECT
    current_setting('max_prepared_transactions')::integer = 0 AND EXISTS (
        SELECT FROM pg_trigger AS t
        WHERE t.tgrelid = to_regclass('mqbroker_outbox') AND t.tgname = 'mqbroker_outbox_wake' AND t.tgenabled <> 'D'
    ) AS notifies,
    pg_backend_pid() = %(pid)s AS is_direct
