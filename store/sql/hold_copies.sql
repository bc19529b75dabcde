-- Hold the lock of the copies alone until the end of the transaction: changes of the configuration wait, and those which are
-- under way end first.
SELECT pg_advisory_xact_lock(%(key)s)
