-- Find a topic by its name.
SELECT id, name, queues, permission, cell_id
FROM topic
WHERE name = %(name)s
