-- Find topics by their ids.
SELECT id, name, queues, permission, cell_id
FROM topic
WHERE id = any(%(ids)s::integer [])
