-- List the topics by name: which of them a key for some topics only may be asked about.
SELECT id, name
FROM topic
LIMIT %(max_topics)s
