-- Take the lock of maintenance until the session ends, unless another session holds it, and set time limits: a
-- statement may take long, but waits for a lock only so briefly that writers behind it are not delayed.
-- Row: Whether this session holds the lock of maintenance, and the time limits that were set.
SELECT
    pg_try_advisory_lock(%(key)s) AS taken,
    set_config('lock_timeout', %(lock_timeout)s, false) AS lock_timeout,
    set_config('statement_timeout', %(statement_timeout)s, false) AS statement_timeout
