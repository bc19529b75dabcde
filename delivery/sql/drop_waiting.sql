-- Drop the entries that a fair group has read ahead in some queues, because its progress there is reset.
DELETE FROM waiting
WHERE group_id = %(group_id)s AND queue_topic_id = %(topic_id)s AND queue_id = any(%(queue_ids)s::integer [])
