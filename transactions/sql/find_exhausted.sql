-- Find halves that were asked about as often as is allowed, and that nobody decided in the interval after.
SELECT transaction_id
FROM half_message
WHERE exhausted AND discarded_at IS NULL AND next_check_at <= now() - make_interval(secs => %(late_seconds)s)
ORDER BY next_check_at
LIMIT %(max_halves)s
