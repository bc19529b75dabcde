-- Find the queues of the groups' retry topics that hold the messages of some topics. Reads only.
SELECT t.id AS topic_id, q.queue_id
FROM retry_queue AS q
INNER JOIN consumer_group AS g ON q.group_id = g.id
INNER JOIN topic AS t ON t.name = '%%RETRY%%' || g.name
WHERE q.topic_id = any(%(topics)s::integer [])
