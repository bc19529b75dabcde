-- Lock receipts whose messages lie in a segment that is dropped next. A row that is being acked or given up is skipped: its
-- message is not needed any more, or that transaction appends it again.
SELECT r.group_id, r.topic_id, r.queue_id, r.queue_offset, r.log_segment, r.log_offset
FROM receipt AS r
WHERE r.log_segment <= %(leaving_id)s
ORDER BY r.group_id, r.topic_id, r.queue_id, r.queue_offset
LIMIT %(max_receipts)s
FOR UPDATE SKIP LOCKED
