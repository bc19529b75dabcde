-- Hold the log alone beyond the end of this transaction, or fail after the lock time-out: new writers queue behind this
-- session. UNLOCK_LOG follows in the same message.
SELECT pg_advisory_lock(%(key)s)
