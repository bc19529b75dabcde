-- Share the lock of the copies until the end of the transaction. A repair holds the lock alone, so that it does not see
-- a change of the configuration that is made in only some cells.
SELECT pg_advisory_xact_lock_shared(%(key)s)
