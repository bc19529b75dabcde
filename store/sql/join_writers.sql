-- Join the writers of the log until the end of the transaction. Writers share this lock; the roll and the export take it
-- alone, and then know that nothing is being appended.
SELECT pg_advisory_xact_lock_shared(%(key)s)
