-- Stores messages of one topic: of three in a row one is sent at once, one is committed, and one is rolled back or left
-- without an end. As the broker does it: the halves and the operations beside the log, and dense offsets of two queues.
WITH topics AS (
    INSERT INTO topic (name, queues, permission) VALUES ('orders', 2, 'rw')
    ON CONFLICT (name) DO UPDATE SET queues = excluded.queues
    RETURNING id
),

stored AS (
    INSERT INTO commit_log (
        segment_id, log_offset, stored_at, topic_id, queue_id, message_id, transaction_id, producer_group_id, body,
        body_form
    )
    SELECT
        1, nextval('commit_log_offset'), clock_timestamp(), topics.id, i %% 2, gen_random_uuid(),
        CASE WHEN i %% 3 > 0 THEN gen_random_uuid() END, 1, convert_to('order ' || i, 'UTF8'), 'text'
    FROM topics, generate_series(0, %(messages)s::integer - 1) AS i
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
    SELECT
        n.transaction_id, 1, n.stored_at, 6, now(), 0, false, 1, n.log_offset, n.message_id, n.topic_id, n.queue_id
    FROM numbered AS n
    WHERE n.i %% 6 = 2
),

entries AS (
    INSERT INTO consume_queue (
        segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at
    )
    SELECT
        1, n.topic_id, n.queue_id,
        coalesce(
            (
                SELECT max(c.queue_offset) + 1
                FROM consume_queue AS c
                WHERE c.topic_id = n.topic_id AND c.queue_id = n.queue_id
            ), 0
        ) + row_number() OVER (PARTITION BY n.queue_id ORDER BY n.log_offset) - 1,
        1, n.log_offset, 0, 0, clock_timestamp()
    FROM numbered AS n
    WHERE n.i %% 3 < 2
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
