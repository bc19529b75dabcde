-- Write the queues of half messages that are to be committed into the register `mq.ending`, as `topic:queue,…`, to be
-- locked by the next statement. The rows are read without a lock, because the queues of a half message never change.
SELECT
    set_config('mq.ending', coalesce(string_agg(DISTINCT m.topic_id || ':' || m.queue_id, ','), ''), true) AS ending
FROM half_message AS h
CROSS JOIN LATERAL unnest(
    coalesce(h.topic_ids, ARRAY[h.topic_id]), coalesce(h.queue_ids, ARRAY[h.queue_id])
) AS m (topic_id, queue_id)
WHERE h.transaction_id = any(%(committed)b::uuid [])
