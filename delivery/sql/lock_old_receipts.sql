-- Lock deliveries in flight whose messages lie in a segment that goes. One that is just acked or given up is skipped: it
-- needs its message no more, or what becomes of it appends the message again.
SELECT r.group_id, r.topic_id, r.queue_id, r.queue_offset, r.log_segment, r.log_offset
FROM receipt AS r
WHERE r.log_segment <= %(leaving_id)s
ORDER BY r.group_id, r.topic_id, r.queue_id, r.queue_offset
LIMIT %(max_receipts)s
FOR UPDATE SKIP LOCKED
