-- Find the queue of a group's retry topic that holds the retries of one topic's messages.
SELECT queue_id
FROM retry_queue
WHERE group_id = %(group_id)s AND topic_id = %(topic_id)s
