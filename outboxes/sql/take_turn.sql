-- In a source: begin a transaction's work in the schema of its outbox, unless another process drains it now. The lock is
-- one of the transaction: a process that is frozen holds it until its session is ended as idle.
SELECT
    set_config('search_path', %(schema)s, true) AS search_path,
    pg_try_advisory_xact_lock(hashtextextended('mqbroker_outbox ' || %(schema)s::text, 0)) AS is_mine
