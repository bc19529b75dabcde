-- Make a pending half due for a check at once, also one that was asked about as often as is allowed.
UPDATE half_message
SET next_check_at = now(), exhausted = false
WHERE transaction_id = %(transaction_id)s AND discarded_at IS NULL
RETURNING next_check_at, check_times
