-- Let deliveries of ordered groups count towards the limits of their values: their receipts, which this transaction has
-- put in flight, get the value, and the rate of the value is used from the time of this statement on.
WITH handed AS MATERIALIZED (
    SELECT h.*
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(value)b::text [], %(entry_topic_id)b::integer [],
        %(entry_queue_id)b::integer [], %(queue_offset)b::bigint [], %(is_counted)b::boolean [],
        %(token_seconds)b::double precision []
    ) AS h (group_id, topic_id, value, entry_topic_id, entry_queue_id, queue_offset, is_counted, token_seconds)
),

paced AS (
    INSERT INTO pace (group_id, topic_id, value, due_at)
    SELECT h.group_id, h.topic_id, h.value, statement_timestamp() + make_interval(secs => sum(h.token_seconds))
    FROM handed AS h
    WHERE h.token_seconds > 0
    GROUP BY h.group_id, h.topic_id, h.value
    ON CONFLICT (group_id, topic_id, value) DO UPDATE
    SET due_at = excluded.due_at + greatest(pace.due_at - statement_timestamp(), interval '0')
),

found AS (
    SELECT f.tid, CASE WHEN h.is_counted THEN h.value END AS value
    FROM handed AS h
    CROSS JOIN LATERAL (
        SELECT r.ctid AS tid
        FROM receipt AS r
        WHERE
            r.group_id = h.group_id AND r.topic_id = h.entry_topic_id AND r.queue_id = h.entry_queue_id
            AND r.queue_offset = h.queue_offset
        LIMIT 1
    ) AS f
)

UPDATE receipt AS r
SET limit_value = found.value
FROM found
WHERE r.ctid = found.tid
