-- Take the lock of the nightly run, or confirm that this session still has it: a session may take it several times.
SELECT pg_try_advisory_lock(%(key)s) AS taken
