-- Find a topic by its name.
SELECT id, name, queues, permission
FROM topic
WHERE name = %(name)s
