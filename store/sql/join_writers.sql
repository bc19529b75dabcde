-- Join the writers of the log until the end of the transaction. Writers share this lock. The roll and the export hold
-- the lock alone, so that no append is under way.
SELECT pg_advisory_xact_lock_shared(%(key)s)
