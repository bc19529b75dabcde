-- Limit the waits for locks until the end of the transaction: new writers queue behind a session that waits.
SELECT set_config('lock_timeout', %(milliseconds)s, true)
