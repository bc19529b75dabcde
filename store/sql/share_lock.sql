-- Share an advisory lock until the end of the transaction. Writers share the lock of the log: the roll and the export
-- hold it alone, so that no append is under way. Changes of the configuration share the lock of the copies: a repair
-- holds it alone, so that it does not see a change that is made in only some cells.
SELECT pg_advisory_xact_lock_shared(%(key)s)
