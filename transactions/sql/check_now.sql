-- Make a pending half message due for a check now, even if it has had all allowed checks. IS TRUE makes the planner use
-- the index of the ids and not the index of the due times.
-- Row: When a pending half message is checked next, and how many checks it has had.
UPDATE half_message
SET next_check_at = now(), line = 0, exhausted = false
WHERE transaction_id = %(transaction_id)s AND (discarded_at IS NULL) IS TRUE
RETURNING next_check_at, check_times
