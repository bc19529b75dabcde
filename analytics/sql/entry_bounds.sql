-- Find the first and last offset of each queue that has entries in a segment. The index is probed once per queue,
-- however many entries the queue has: each step finds the queue that follows the previous one.
-- Row: The first and last offset of a queue in one segment.
WITH RECURSIVE queue AS (
    (
        SELECT topic_id, queue_id
        FROM consume_queue
        WHERE segment_id = %(segment_id)s
        ORDER BY topic_id, queue_id
        LIMIT 1
    )
    UNION ALL
    SELECT following.topic_id, following.queue_id
    FROM queue AS q
    CROSS JOIN LATERAL (
        SELECT c.topic_id, c.queue_id
        FROM consume_queue AS c
        WHERE c.segment_id = %(segment_id)s AND (c.topic_id, c.queue_id) > (q.topic_id, q.queue_id)
        ORDER BY c.topic_id, c.queue_id
        LIMIT 1
    ) AS following
)

SELECT
    q.topic_id, q.queue_id,
    (
        SELECT min(c.queue_offset)
        FROM consume_queue AS c
        WHERE c.segment_id = %(segment_id)s AND c.topic_id = q.topic_id AND c.queue_id = q.queue_id
    ) AS first_offset,
    (
        SELECT max(c.queue_offset)
        FROM consume_queue AS c
        WHERE c.segment_id = %(segment_id)s AND c.topic_id = q.topic_id AND c.queue_id = q.queue_id
    ) AS last_offset
FROM queue AS q
ORDER BY q.topic_id, q.queue_id
