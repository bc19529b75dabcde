-- Find the segment whose log is dropped next: the entries that may point into this log, in this segment and in the
-- segment after it, are already dropped. Messages in this segment or an older one that a row needs must be appended
-- again.
SELECT max(s.id) AS segment_id
FROM segment AS s
INNER JOIN segment AS following ON s.id + 1 = following.id
WHERE s.state = 'closed' AND following.state = 'closed' AND to_regclass('consume_queue_' || following.id) IS NULL
