-- Find the segment whose log is dropped next: the queues that may point into it, its own and those of the segment after
-- it, are dropped. Each body that a row needs in it, or in an older segment, must be appended again.
SELECT max(s.id) AS segment_id
FROM segment AS s
INNER JOIN segment AS following ON s.id + 1 = following.id
WHERE s.state = 'closed' AND following.state = 'closed' AND to_regclass('consume_queue_' || following.id) IS NULL
