-- Lock receipts whose messages lie in the segment that is dropped next. A row that another transaction is deleting is
-- skipped: its message is no longer needed, or the other transaction appends it again.
SELECT r.group_id, r.topic_id, r.queue_id, r.queue_offset, r.log_segment, r.log_offset
FROM receipt AS r
WHERE r.log_segment <= %(leaving_id)s
ORDER BY r.group_id, r.topic_id, r.queue_id, r.queue_offset
LIMIT %(max_receipts)s
FOR UPDATE SKIP LOCKED
