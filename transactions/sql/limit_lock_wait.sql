-- Limit the wait for a lock in this transaction: an operator's delete must not hang behind producers in use.
SELECT set_config('lock_timeout', %(lock_timeout)s, true) AS lock_timeout
