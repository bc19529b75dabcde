-- Lock timers whose messages lie in a segment that goes, after a given one in the order of their ids, so that all of them
-- are found in one walk. One that is being released or recalled is skipped: it needs its message no more, or the release
-- appends it again.
SELECT t.id, t.log_segment, t.log_offset
FROM timer AS t
WHERE t.id > %(after_id)s AND t.log_segment <= %(leaving_id)s
ORDER BY t.id
LIMIT %(max_timers)s
FOR UPDATE SKIP LOCKED
