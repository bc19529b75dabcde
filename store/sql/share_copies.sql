-- Share the lock of the copies until the end of the transaction. A repair holds it alone, so that it finds no change of the
-- configuration which is made in some of the cells only.
SELECT pg_advisory_xact_lock_shared(%(key)s)
