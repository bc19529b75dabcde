-- Bound how long this transaction waits for a lock, by a setting that ends with it.
SELECT set_config('lock_timeout', %(lock_timeout)b::text, true) AS lock_timeout
