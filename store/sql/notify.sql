-- Notify the other processes of messages that became visible, or of a changed configuration. Not in the writing
-- transaction, because its commit would take a lock of the whole database.
SELECT pg_notify(%(channel)s, %(payload)s)
