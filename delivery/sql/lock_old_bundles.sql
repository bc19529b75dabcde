-- Lock bundles whose messages lie in the segment that is dropped next, at most max_bundles. A bundle that another
-- transaction has locked is skipped.
SELECT b.group_id, b.topic_id, b.queue_id, b.first_offset, b.nonce
FROM bundle AS b
WHERE b.log_segment <= %(leaving_id)s
ORDER BY b.group_id, b.topic_id, b.queue_id, b.first_offset, b.nonce
LIMIT %(max_bundles)s
FOR UPDATE SKIP LOCKED
