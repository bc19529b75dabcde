-- Release the lock of the log. As the first statement of its transaction, this statement takes the snapshot before the
-- lock is released.
SELECT pg_advisory_unlock(%(key)s)
