-- Hold the log alone until the end of this short transaction, or fail after the lock time-out: new writers queue behind
-- this session. The next statement has a later snapshot, so it sees every earlier append.
-- Row: The row of a statement that holds the lock of the log alone, with the transaction's lock time-out.
SELECT
    set_config('lock_timeout', %(lock_timeout)s, true) AS lock_timeout,
    pg_advisory_xact_lock(%(key)s) AS held
