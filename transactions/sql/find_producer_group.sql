-- Find a producer group by its name.
SELECT id, name, reject_transaction_message, max_undecided, checks_paused, api_keys
FROM producer_group
WHERE name = %(name)s
