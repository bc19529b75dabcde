-- Give a topic the next free queue of a group's retry topic. When two processes try the same number, one of them
-- inserts nothing: it reads again, and tries the next number if its topic still has no queue.
INSERT INTO retry_queue (group_id, topic_id, queue_id, topic_name)
SELECT
    %(group_id)s, %(topic_id)s,
    (SELECT coalesce(max(r.queue_id) + 1, 0) FROM retry_queue AS r WHERE r.group_id = %(group_id)s),
    (SELECT t.name FROM topic AS t WHERE t.id = %(topic_id)s)
ON CONFLICT DO NOTHING
