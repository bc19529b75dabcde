-- Find which of these consumer groups exist.
SELECT id
FROM consumer_group
WHERE id = any(%(ids)s::integer [])
