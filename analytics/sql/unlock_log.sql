-- Release the lock of the log. As the first statement of its transaction it takes the snapshot while the lock is still
-- held.
SELECT pg_advisory_unlock(%(key)s)
