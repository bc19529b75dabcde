-- Limit the wait for a lock in this transaction, so that an operator's delete does not hang while producers use the
-- group.
SELECT set_config('lock_timeout', %(lock_timeout)s, true) AS lock_timeout
