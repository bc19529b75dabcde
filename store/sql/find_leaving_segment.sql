-- Find the segment whose log goes next: the queues that may point into it, its own and those of the segment after it, are
-- gone. Whoever still needs a body of it, or of an older one, appends the body again.
SELECT max(s.id) AS segment_id
FROM segment AS s
INNER JOIN segment AS following ON s.id + 1 = following.id
WHERE s.state = 'closed' AND following.state = 'closed' AND to_regclass('consume_queue_' || following.id) IS NULL
