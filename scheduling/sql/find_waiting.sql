-- Find where stored messages of producers wait for their time, if they do: what a repeated send is answered with. A level's
-- entry is found also after its release; the caller asks only for messages that are not visible.
SELECT t.log_offset, t.id AS timer_id, t.due_at, NULL::integer AS queue_id, NULL::bigint AS queue_offset
FROM timer AS t
WHERE t.log_offset = any(%(log_offsets)s::bigint []) AND t.message_id IS NOT NULL
UNION ALL
SELECT c.log_offset, NULL, to_timestamp(c.tags_code / 1000.0), c.queue_id, c.queue_offset
FROM consume_queue AS c
WHERE c.log_offset = any(%(log_offsets)s::bigint []) AND c.real_topic_id IS NOT NULL AND c.reconsume_times = 0
