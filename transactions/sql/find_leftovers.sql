-- Find discarded half messages in the segment whose log is dropped next, or in an older segment.
SELECT transaction_id
FROM half_message
WHERE log_segment <= %(leaving_id)s AND discarded_at IS NOT NULL
ORDER BY transaction_id
LIMIT %(max_halves)s
