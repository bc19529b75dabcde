-- Make a pending half due for a check at once, also one that was asked about as often as is allowed. IS TRUE keeps
-- the planner to the id, away from the index of what is due.
UPDATE half_message
SET next_check_at = now(), exhausted = false
WHERE transaction_id = %(transaction_id)s AND (discarded_at IS NULL) IS TRUE
RETURNING next_check_at, check_times
