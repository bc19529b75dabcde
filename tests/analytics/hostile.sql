-- Stores messages of three topics, in two namespaces and in none, with every bad habit: of three in a row one is sent at
-- once, one is committed, and one is rolled back or left without an end; bodies in every form; every 5th visible one was
-- delayed by a level, every 7th is retried, and every 11th is a dead letter that was sent again.
WITH topics AS (
    INSERT INTO topic (name, queues, permission)
    VALUES
        ('orders', 2, 'rw'), ('team%%orders', 2, 'rw'), ('other%%orders', 2, 'rw'), ('%%RETRY%%shop', 1, 'rw'),
        ('%%DLQ%%shop', 1, 'rw')
    ON CONFLICT (name) DO UPDATE SET queues = excluded.queues
    RETURNING id, name
),

chosen AS (
    SELECT t.id, row_number() OVER (ORDER BY t.name) - 1 AS number
    FROM topics AS t
    WHERE t.name NOT LIKE '\%%%%'
),

stored AS (
    INSERT INTO commit_log (
        segment_id, log_offset, stored_at, topic_id, queue_id, message_id, transaction_id, producer_group_id, tags,
        keys, properties, body, body_form
    )
    SELECT
        1, nextval('commit_log_offset'), clock_timestamp() - interval '10 s', c.id, i %% 2, gen_random_uuid(),
        CASE WHEN i %% 3 > 0 THEN gen_random_uuid() END, 1, CASE WHEN i %% 4 = 0 THEN 'płatne' END,
        CASE WHEN i %% 5 = 0 THEN ARRAY['', 'k''1', 'ключ ' || i] END,
        CASE WHEN i %% 6 = 0 THEN convert_to('{"quote": "\"\\", "łódź": "🐰", "": "no name"}', 'UTF8') END,
        (%(bodies)s::bytea [])[i %% cardinality(%(bodies)s::bytea []) + 1],
        (%(forms)s::text [])[i %% cardinality(%(bodies)s::bytea []) + 1]
    FROM (
        SELECT c.id, i
        FROM generate_series(0, %(messages)s::integer - 1) AS i
        INNER JOIN chosen AS c ON i / 3 %% 3 = c.number
        ORDER BY i
    ) AS c
    RETURNING *
),

numbered AS (
    SELECT s.*, row_number() OVER (ORDER BY s.log_offset) - 1 AS i
    FROM stored AS s
),

halves AS (
    INSERT INTO half_message (
        transaction_id, producer_group_id, stored_at, immunity_seconds, next_check_at, check_times, exhausted,
        log_segment, log_offset, message_id, topic_id, queue_id
    )
    SELECT n.transaction_id, 1, n.stored_at, 6, now(), 0, false, 1, n.log_offset, n.message_id, n.topic_id, n.queue_id
    FROM numbered AS n
    WHERE n.i %% 6 = 2
),

entering AS (
    SELECT n.log_offset, n.topic_id, n.queue_id, NULL::integer AS real_topic_id, 0::bigint AS tags_code, 0 AS times, 1 AS turn
    FROM numbered AS n
    WHERE n.i %% 3 < 2
    UNION ALL
    SELECT
        n.log_offset, s.id, 4, n.topic_id,
        (extract(EPOCH FROM n.stored_at + interval '5 s') * 1000)::bigint, 0, 0
    FROM numbered AS n
    INNER JOIN topic AS s ON s.name = 'SCHEDULE_TOPIC_XXXX'
    WHERE n.i %% 3 < 2 AND n.i %% 5 = 0
    UNION ALL
    SELECT n.log_offset, t.id, 0, NULL, 0, 1, 2
    FROM numbered AS n
    INNER JOIN topics AS t ON t.name = '%%RETRY%%shop'
    WHERE n.i %% 3 < 2 AND n.i %% 7 = 0
    UNION ALL
    SELECT n.log_offset, t.id, 0, NULL, 0, 16, 3
    FROM numbered AS n
    INNER JOIN topics AS t ON t.name = '%%DLQ%%shop'
    WHERE n.i %% 3 < 2 AND n.i %% 11 = 0
    UNION ALL
    SELECT n.log_offset, n.topic_id, n.queue_id, NULL, 0, 0, 4
    FROM numbered AS n
    WHERE n.i %% 3 < 2 AND n.i %% 11 = 0
),

redriven AS (
    INSERT INTO redrive (segment_id, group_id, queue_offset, redriven_at)
    VALUES (1, 1, (SELECT count(*) FROM redrive), now())
),

entries AS (
    INSERT INTO consume_queue (
        segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at,
        real_topic_id, real_queue_id
    )
    SELECT
        1, e.topic_id, e.queue_id,
        coalesce(
            (
                SELECT max(c.queue_offset) + 1
                FROM consume_queue AS c
                WHERE c.topic_id = e.topic_id AND c.queue_id = e.queue_id
            ), 0
        ) + row_number() OVER (PARTITION BY e.topic_id, e.queue_id ORDER BY e.turn, e.log_offset) - 1,
        1, e.log_offset, e.tags_code, e.times, clock_timestamp() + e.turn * interval '1 ms', e.real_topic_id,
        CASE WHEN e.real_topic_id IS NOT NULL THEN 0 END
    FROM entering AS e
)

INSERT INTO operation (
    segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
    stored_at, log_segment, log_offset, message_id, topic_id, queue_id
)
SELECT
    1, nextval('operation_id'), n.transaction_id, 1, CASE WHEN n.i %% 3 = 1 THEN 'COMMIT' ELSE 'ROLLBACK' END,
    'producer', clock_timestamp(), 0, n.stored_at, 1, n.log_offset, n.message_id, n.topic_id, n.queue_id
FROM numbered AS n
WHERE n.i %% 3 = 1 OR n.i %% 6 = 5
