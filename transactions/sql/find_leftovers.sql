-- Find discarded halves whose messages lie in the segment that is dropped next, or an older one.
SELECT transaction_id
FROM half_message
WHERE log_segment <= %(leaving_id)s AND discarded_at IS NOT NULL
ORDER BY transaction_id
LIMIT %(max_halves)s
