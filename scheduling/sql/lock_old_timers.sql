-- Lock timers whose messages lie in the leaving segment, in id order. A timer that another transaction releases or
-- recalls is skipped: its message is no longer needed, or the release reappends it.
-- Row: A locked timer whose message lies in the leaving segment.
SELECT t.id, t.log_segment, t.log_offset
FROM timer AS t
WHERE t.id = any(%(ids)s::uuid []) AND t.log_segment <= %(leaving_id)s
ORDER BY t.id
FOR UPDATE SKIP LOCKED
