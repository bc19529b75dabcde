-- Take the lock of the log exclusively, beyond the end of this transaction, or fail after the lock time-out. New
-- writers queue behind this session until UNLOCK_LOG, which follows in the same message.
SELECT pg_advisory_lock(%(key)s)
