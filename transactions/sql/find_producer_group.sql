-- Find a producer group by its name.
-- Row: A producer group as the message path needs it.
-- Null: max_undecided, api_keys.
SELECT id, name, reject_transaction_message, max_undecided, checks_paused, api_keys
FROM producer_group
WHERE name = %(name)s
