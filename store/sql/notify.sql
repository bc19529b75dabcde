-- Notify the other processes: of messages that became visible, or of a changed configuration. Runs outside the writing
-- transaction, whose commit it would have take a lock of the whole database.
SELECT pg_notify(%(channel)s, %(payload)s)
