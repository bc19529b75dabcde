-- Raise the floor of every queue above its entries in a segment that is about to be dropped. Committed before the
-- entries are dropped, so that a queue that loses all entries continues from its floor and never starts from 0 again. A
-- floor is never lowered.
INSERT INTO queue_floor (topic_id, queue_id, min_offset)
SELECT t.id, q.queue_id, newest.queue_offset + 1
FROM topic AS t
CROSS JOIN LATERAL generate_series(0, t.queues - 1) AS q (queue_id)
CROSS JOIN LATERAL (
    SELECT c.queue_offset
    FROM consume_queue AS c
    WHERE c.segment_id = %(segment_id)s AND c.topic_id = t.id AND c.queue_id = q.queue_id
    ORDER BY c.queue_offset DESC
    LIMIT 1
) AS newest
ORDER BY t.id, q.queue_id
ON CONFLICT (topic_id, queue_id) DO UPDATE
SET min_offset = excluded.min_offset
WHERE queue_floor.min_offset < excluded.min_offset
