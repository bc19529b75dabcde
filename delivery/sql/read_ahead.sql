-- Read ranges of queues ahead for a fair group, as runs of at most max_offsets entries of one key and queue. The key is
-- the sharding key, or the text that a pattern finds in the stored JSON of the properties. The caller holds the lock of
-- the group's progress, and moves the progress beyond these entries in the same transaction.
WITH head AS MATERIALIZED (
    SELECT
        q.queue_topic_id, q.queue_id, e.queue_offset, e.log_segment, e.log_offset,
        left(
            coalesce(
                CASE
                    WHEN %(property)s::text IS NULL THEN m.sharding_key
                    ELSE substring(convert_from(m.properties, 'UTF8') FROM %(property)s::text)
                END,
                ''
            ),
            %(max_key)s::integer
        ) AS fair_key
    FROM unnest(
        %(queue_topic_id)s::integer [], %(queue_id)s::integer [], %(from_offset)s::bigint [], %(to_offset)s::bigint []
    ) AS q (queue_topic_id, queue_id, from_offset, to_offset)
    CROSS JOIN LATERAL (
        SELECT c.queue_offset, c.log_segment, c.log_offset
        FROM consume_queue AS c
        WHERE
            c.topic_id = q.queue_topic_id AND c.queue_id = q.queue_id AND c.queue_offset >= q.from_offset
            AND c.queue_offset < q.to_offset
        ORDER BY c.queue_offset
        LIMIT q.to_offset - q.from_offset
    ) AS e
    LEFT JOIN LATERAL (
        SELECT l.sharding_key, l.properties FROM commit_log AS l
        WHERE l.segment_id = e.log_segment AND l.log_offset = e.log_offset
        LIMIT 1
    ) AS m ON true
),

parted AS (
    SELECT
        h.*,
        (row_number() OVER (PARTITION BY h.fair_key, h.queue_topic_id, h.queue_id ORDER BY h.queue_offset) - 1)
        / %(max_offsets)s::bigint AS run
    FROM head AS h
)

INSERT INTO waiting (
    group_id, topic_id, fair_key, log_segment, log_offset, queue_topic_id, queue_id, first_offset, offsets, taken
)
SELECT
    %(group_id)s, %(topic_id)s, p.fair_key, (array_agg(p.log_segment ORDER BY p.queue_offset))[1],
    (array_agg(p.log_offset ORDER BY p.queue_offset))[1], p.queue_topic_id, p.queue_id, min(p.queue_offset),
    array_agg(p.queue_offset ORDER BY p.queue_offset), 0
FROM parted AS p
GROUP BY p.fair_key, p.queue_topic_id, p.queue_id, p.run
