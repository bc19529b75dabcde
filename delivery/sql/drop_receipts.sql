-- Drop a group's deliveries of some queues, because its progress there is reset. Their handles are refused from now on.
DELETE FROM receipt
WHERE group_id = %(group_id)s AND topic_id = %(topic_id)s AND queue_id = any(%(queue_ids)s::integer [])
