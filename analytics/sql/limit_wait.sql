-- Wait for locks no longer than this until the end of the transaction: new writers queue behind whoever waits for them.
SELECT set_config('lock_timeout', %(milliseconds)s, true)
