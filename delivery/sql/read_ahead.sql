-- Read ranges of queues ahead for fair groups, as runs of at most max_offsets entries of one key and queue. The ranges
-- come as a parameter in the form of the register `mq.ahead`, or else from this register. The key is the sharding key,
-- or the text that a pattern finds in the stored JSON of the properties. The caller holds the locks of the groups'
-- progress, and moves the progress beyond these entries in the same transaction.
WITH given AS MATERIALIZED (
    SELECT
        a.n[1] AS reading, (%(property)s::text [])[a.n[1]] AS property,
        (%(key_length)s::integer [])[a.n[1]] AS key_length, a.n[2]::integer AS queue_topic_id,
        a.n[3]::integer AS queue_id, a.n[4] AS from_offset, a.n[5] AS to_offset
    FROM (
        SELECT string_to_array(t.ahead, ' ')::bigint [] AS n
        FROM string_to_table(
            nullif(coalesce(%(ahead)s::text, current_setting('mq.ahead', true)), ''), ','
        ) AS t (ahead)
        OFFSET 0
    ) AS a
),

head AS MATERIALIZED (
    SELECT
        q.reading, q.queue_topic_id, q.queue_id, e.queue_offset, e.log_segment, e.log_offset,
        left(
            coalesce(
                CASE
                    WHEN q.property IS NULL THEN m.sharding_key
                    ELSE substring(convert_from(m.properties, 'UTF8') FROM q.property)
                END,
                ''
            ),
            q.key_length
        ) COLLATE "C" AS fair_key
    FROM given AS q
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

keyed AS (
    SELECT
        h.reading, h.fair_key, h.queue_topic_id, h.queue_id, array_agg(h.queue_offset ORDER BY h.queue_offset) AS offsets,
        array_agg(h.log_segment ORDER BY h.queue_offset) AS log_segments,
        array_agg(h.log_offset ORDER BY h.queue_offset) AS log_offsets
    FROM head AS h
    GROUP BY h.reading, h.fair_key, h.queue_topic_id, h.queue_id
)

INSERT INTO waiting (
    group_id, topic_id, fair_key, log_segment, log_offset, queue_topic_id, queue_id, first_offset, offsets, taken
)
SELECT
    (%(group_id)s::integer [])[k.reading], (%(topic_id)s::integer [])[k.reading], k.fair_key, k.log_segments[r.begin],
    k.log_offsets[r.begin], k.queue_topic_id, k.queue_id, k.offsets[r.begin],
    k.offsets[r.begin:r.begin + %(max_offsets)s::integer - 1], 0
FROM keyed AS k
CROSS JOIN LATERAL generate_series(1, cardinality(k.offsets), %(max_offsets)s::integer) AS r (begin)
