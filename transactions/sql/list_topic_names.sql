-- List the topics: the scopes of a key are compared with their names.
SELECT id, name
FROM topic
LIMIT %(max_topics)s
