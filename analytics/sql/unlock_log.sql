-- Let the writers of the log go on. As the first statement of a transaction it takes its snapshot while the log is held.
SELECT pg_advisory_unlock(%(key)s)
