-- Lock timers whose messages lie in a segment that goes, in id order. One that is being released or recalled is skipped: it
-- needs its message no more, or the release appends it again.
SELECT t.id, t.log_segment, t.log_offset
FROM timer AS t
WHERE t.id = any(%(ids)s::uuid []) AND t.log_segment <= %(leaving_id)s
ORDER BY t.id
FOR UPDATE SKIP LOCKED
