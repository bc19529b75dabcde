-- Take the lock of the nightly run, or show that this session has it still: a session may take it again and again.
SELECT pg_try_advisory_lock(%(key)s) AS taken
