-- Make a pending half due for a check at once, also one that has had as many checks as are allowed. IS TRUE keeps the
-- planner to the index of the ids, away from that of the due times.
UPDATE half_message
SET next_check_at = now(), line = 0, exhausted = false
WHERE transaction_id = %(transaction_id)s AND (discarded_at IS NULL) IS TRUE
RETURNING next_check_at, check_times
