-- Hold the log alone until the end of this short transaction, or give up after a short wait: new writers queue behind
-- whoever waits for the old ones. What was appended before is seen by the next statement, whose snapshot is later.
SELECT
    set_config('lock_timeout', %(lock_timeout)s, true) AS lock_timeout,
    pg_advisory_xact_lock(%(key)s) AS held
