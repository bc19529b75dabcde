-- Wait until no writer of the log is under way, and keep new ones waiting until the end of this short transaction.
SELECT pg_advisory_xact_lock(%(key)s)
