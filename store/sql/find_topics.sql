-- Find topics by their ids.
SELECT id, name, queues, permission
FROM topic
WHERE id = any(%(ids)s::integer [])
