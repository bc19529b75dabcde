-- Find discarded halves whose messages lie in a segment that goes.
SELECT transaction_id
FROM half_message
WHERE log_segment <= %(leaving_id)s AND discarded_at IS NOT NULL
ORDER BY transaction_id
LIMIT %(max_halves)s
