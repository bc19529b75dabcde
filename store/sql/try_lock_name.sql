-- Take an advisory lock by name until the end of this transaction, unless another session has the lock. The lock ends
-- with its session, so a process that is killed leaves nothing to be cleared; and no row is locked, so an operator may
-- change the rows of the work with this name.
SELECT pg_try_advisory_xact_lock(hashtextextended(%(name)s::text, 0)) AS taken
