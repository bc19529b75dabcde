-- Read the names of topics.
SELECT id, name
FROM topic
