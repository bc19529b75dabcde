-- Store messages of 1 kB with their entries, and a transaction for every second message.
WITH place AS MATERIALIZED (
    SELECT
        (SELECT id FROM segment WHERE state = 'open') AS segment_id,
        (SELECT id FROM topic WHERE name = %(topic)s) AS topic_id,
        (SELECT id FROM producer_group WHERE name = %(group)s) AS group_id
),

-- Finds the last offset of each queue before the first row is inserted: a scan for each row would pass all earlier rows.
tail AS MATERIALIZED (
    SELECT q AS queue_id, coalesce(max(c.queue_offset), -1) AS queue_offset
    FROM place AS p
    CROSS JOIN generate_series(0, 3) AS q
    LEFT JOIN consume_queue AS c ON (c.segment_id, c.topic_id, c.queue_id) = (p.segment_id, p.topic_id, q)
    GROUP BY q
),

stored AS (
    INSERT INTO commit_log (
        segment_id, log_offset, stored_at, topic_id, queue_id, message_id, transaction_id, producer_group_id,
        properties, body, body_form
    )
    SELECT
        p.segment_id, nextval('commit_log_offset'), now(), p.topic_id, n %% 4, gen_random_uuid(),
        CASE WHEN n %% 2 = 0 THEN gen_random_uuid() END, CASE WHEN n %% 2 = 0 THEN p.group_id END,
        convert_to(format('{"number":"%%s","source":"shop"}', n), 'UTF8'), b.body, 'text'
    FROM place AS p
    CROSS JOIN generate_series(1, %(messages)s) AS n
    CROSS JOIN LATERAL (
        SELECT convert_to(string_agg(encode(sha512(convert_to(format('%%s:%%s', n, part), 'UTF8')), 'hex'), ''), 'UTF8')
        FROM generate_series(1, 8) AS part
    ) AS b (body)
    RETURNING segment_id, log_offset, topic_id, queue_id, message_id, transaction_id, producer_group_id
),

entered AS (
    INSERT INTO consume_queue (
        segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at
    )
    SELECT
        s.segment_id, s.topic_id, s.queue_id,
        t.queue_offset + row_number() OVER (PARTITION BY s.queue_id ORDER BY s.log_offset), s.segment_id, s.log_offset,
        0, 0, now()
    FROM stored AS s
    INNER JOIN tail AS t USING (queue_id)
)

INSERT INTO operation (
    segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
    stored_at, log_segment, log_offsets, message_ids, topic_ids, queue_ids
)
SELECT
    s.segment_id, nextval('operation_id'), s.transaction_id, s.producer_group_id, 'COMMIT', 'producer', now(), 0,
    now(), s.segment_id, ARRAY[s.log_offset], ARRAY[s.message_id], ARRAY[s.topic_id], ARRAY[s.queue_id]
FROM stored AS s
WHERE s.transaction_id IS NOT NULL
