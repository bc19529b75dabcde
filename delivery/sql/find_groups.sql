-- Find which of these consumer groups are there.
SELECT id
FROM consumer_group
WHERE id = any(%(ids)s::integer [])
