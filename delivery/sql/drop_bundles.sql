-- Drop a group's bundles of some queues, because its progress there is reset. Runs before drop_receipts: a transaction
-- that has given deliveries of a bundle receipts ends before this statement does.
DELETE FROM bundle
WHERE group_id = %(group_id)s AND topic_id = %(topic_id)s AND queue_id = any(%(queue_ids)s::integer [])
