-- Find half messages that have had all allowed checks, and are still undecided an interval after the last check.
SELECT transaction_id
FROM half_message
WHERE exhausted AND discarded_at IS NULL AND next_check_at <= now() - make_interval(secs => %(late_seconds)s)
ORDER BY next_check_at
LIMIT %(max_halves)s
