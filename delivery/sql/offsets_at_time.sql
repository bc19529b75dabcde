-- Find in each queue the first offset whose entry became visible at a time or after it: a binary search over the dense
-- offsets, some twenty probes by index for a million entries. An entry that retention has dropped meanwhile counts as
-- earlier than the time.
WITH RECURSIVE search AS (
    SELECT q.queue_id, q.low, q.high
    FROM unnest(%(queue_id)s::integer [], %(low)s::bigint [], %(high)s::bigint []) AS q (queue_id, low, high)
    UNION ALL
    SELECT
        s.queue_id,
        CASE WHEN probe.entered_at >= %(time)s THEN s.low ELSE (s.low + s.high) / 2 + 1 END,
        CASE WHEN probe.entered_at >= %(time)s THEN (s.low + s.high) / 2 ELSE s.high END
    FROM search AS s
    LEFT JOIN LATERAL (
        SELECT c.entered_at
        FROM consume_queue AS c
        WHERE c.topic_id = %(topic_id)s AND c.queue_id = s.queue_id AND c.queue_offset = (s.low + s.high) / 2
        LIMIT 1
    ) AS probe ON true
    WHERE s.low < s.high
)

SELECT queue_id, low AS queue_offset
FROM search
WHERE low >= high
