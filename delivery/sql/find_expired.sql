-- Find whether any delivery's time has been over for so long: one index probe, so that nothing to do costs nothing.
SELECT 1
FROM receipt
WHERE state = 'flight' AND expires_at <= now() - make_interval(secs => %(late_seconds)s)
LIMIT 1
