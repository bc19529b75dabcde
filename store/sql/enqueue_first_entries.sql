-- Add entries to queues that have no entry in the open segment yet, in each queue without a hole from its highest
-- offset in any segment on. If retention has dropped all entries of a queue, the queue continues from its floor. Safe
-- for the same reason as `enqueue_entries`, which runs before and leaves these queues out. These queues are few, and
-- only this statement looks into every partition.
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
    SELECT
        q.topic_id, q.queue_id,
        coalesce(
            (
                SELECT c.queue_offset + 1
                FROM consume_queue AS c
                WHERE c.topic_id = q.topic_id AND c.queue_id = q.queue_id
                ORDER BY c.queue_offset DESC
                LIMIT 1
            ),
            (SELECT f.min_offset FROM queue_floor AS f WHERE f.topic_id = q.topic_id AND f.queue_id = q.queue_id),
            0
        ) AS next_offset
    FROM unnest(%(locked_topic_id)b::integer [], %(locked_queue_id)b::integer []) AS q (topic_id, queue_id)
) AS tail ON e.topic_id = tail.topic_id AND e.queue_id = tail.queue_id
ORDER BY e.number
RETURNING topic_id, queue_id, queue_offset, log_offset
