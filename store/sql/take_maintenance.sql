-- Take the lock of maintenance until the session ends, unless another session holds it, and set its limits: a statement
-- may take long, but a lock is waited for only so long that the writers behind it notice nothing.
SELECT
    pg_try_advisory_lock(%(key)s) AS taken,
    set_config('lock_timeout', %(lock_timeout)s, false) AS lock_timeout,
    set_config('statement_timeout', %(statement_timeout)s, false) AS statement_timeout
