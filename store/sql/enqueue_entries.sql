-- Add entries to queues, in each queue without a hole from its highest offset in the open segment on. Safe because the
-- caller holds the locks of these queues and this statement's snapshot is newer than the locks: no other session can
-- read the same highest offset. A queue without an entry in this segment is left out, and none of its entries is
-- returned.
-- Row: An entry that was added to a queue, with its queue offset.
INSERT INTO consume_queue (
    segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at,
    real_topic_id, real_queue_id, real_tags_code, due_at
)
SELECT
    %(segment_id)s, e.topic_id, e.queue_id,
    tail.next_offset + row_number() OVER (PARTITION BY e.topic_id, e.queue_id ORDER BY e.number) - 1,
    e.log_segment, e.log_offset, e.tags_code, e.reconsume_times, clock_timestamp(),
    e.real_topic_id, e.real_queue_id, e.real_tags_code, e.due_at
FROM unnest(
    %(topic_id)b::integer [], %(queue_id)b::integer [], %(log_segment)b::integer [], %(log_offset)b::bigint [],
    %(tags_code)b::bigint [], %(reconsume_times)b::smallint [], %(real_topic_id)b::integer [],
    %(real_queue_id)b::integer [], %(real_tags_code)b::bigint [], %(due_at)b::timestamptz []
) WITH ORDINALITY AS e (
    topic_id, queue_id, log_segment, log_offset, tags_code, reconsume_times, real_topic_id, real_queue_id,
    real_tags_code, due_at, number
)
INNER JOIN (
    SELECT q.topic_id, q.queue_id, newest.queue_offset + 1 AS next_offset
    FROM unnest(%(locked_topic_id)b::integer [], %(locked_queue_id)b::integer []) AS q (topic_id, queue_id)
    CROSS JOIN LATERAL (
        SELECT c.queue_offset
        FROM consume_queue AS c
        WHERE c.segment_id = %(segment_id)s AND c.topic_id = q.topic_id AND c.queue_id = q.queue_id
        ORDER BY c.queue_offset DESC
        LIMIT 1
    ) AS newest
) AS tail ON e.topic_id = tail.topic_id AND e.queue_id = tail.queue_id
ORDER BY e.number
RETURNING topic_id, queue_id, queue_offset, log_offset
