-- List the topics, so that their names can be compared with the scopes of a key.
-- Row: The name of a topic, to be compared with the scopes of a key.
SELECT id, name
FROM topic
LIMIT %(max_topics)s
