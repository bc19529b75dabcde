-- Lock bundles whose invisible time is over, at most max_bundles, the earliest first. A bundle that another transaction
-- has locked is skipped.
SELECT b.group_id, b.topic_id, b.queue_id, b.first_offset, b.nonce
FROM bundle AS b
WHERE b.expires_at > coalesce(%(since)s::timestamptz, '-infinity') AND b.expires_at <= now()
ORDER BY b.expires_at
LIMIT %(max_bundles)s
FOR UPDATE SKIP LOCKED
