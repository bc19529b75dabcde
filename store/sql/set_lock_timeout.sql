-- Set for how long this transaction waits for a lock. The setting ends with the transaction.
SELECT set_config('lock_timeout', %(lock_timeout)b::text, true) AS lock_timeout
