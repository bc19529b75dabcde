-- Hold the lock of the copies alone until the end of the transaction, after changes of the configuration that are under
-- way have ended. New changes wait.
SELECT pg_advisory_xact_lock(%(key)s)
