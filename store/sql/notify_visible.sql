-- Notify the other processes how many messages became visible in which topics. Runs outside the writing transaction.
SELECT pg_notify(%(channel)s, %(payload)s)
