-- Become the only one that maintains segments, until the session ends, and be patient and brief: a statement may take
-- long, but no lock is waited for long enough to hold up those who queue behind.
SELECT
    pg_try_advisory_lock(%(key)s) AS taken,
    set_config('lock_timeout', %(lock_timeout)s, false) AS lock_timeout,
    set_config('statement_timeout', %(statement_timeout)s, false) AS statement_timeout
