-- End a transaction like `end_free_halves`, for a batch with one end: each parameter is one value, not an array. The
-- locked queues stay rows, because several queues may be locked. Without a row of `half_message` the answer has no row.
-- A test runs both statements on the same rows: change both.
WITH tail AS MATERIALIZED (
    SELECT
        q.queue,
        (
            SELECT c.queue_offset
            FROM consume_queue AS c
            WHERE
                c.segment_id = %(segment_id)b::integer AND c.topic_id = (q.queue >> 32)::integer
                AND c.queue_id = (q.queue & 4294967295)::integer
            ORDER BY c.queue_offset DESC
            LIMIT 1
        ) AS queue_offset
    FROM unnest(nullif(current_setting('mq.queues', true), '')::bigint []) AS q (queue)
),

ended AS (
    DELETE FROM half_message AS h
    WHERE
        h.transaction_id = %(transaction_id)b::uuid
        AND EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)b::integer)
        AND h.producer_group_id = coalesce(%(group_id)b::integer, h.producer_group_id)
        AND h.log_offset = coalesce(%(log_offset)b::bigint, h.log_offset)
        AND CASE
            WHEN h.discarded_at IS NOT NULL THEN false
            WHEN %(decision)b::text = 'ROLLBACK' THEN true
            ELSE
                h.delays IS NULL AND h.log_segment >= %(segment_id)b::integer - 1
                AND (
                    SELECT t.queue_offset FROM tail AS t WHERE t.queue = h.topic_id::bigint << 32 | h.queue_id
                ) IS NOT NULL
        END
        AND CASE
            WHEN h.xmax = 0 THEN true
            ELSE h.ctid = (
                SELECT t.ctid
                FROM half_message AS t
                WHERE t.transaction_id = h.transaction_id
                FOR UPDATE SKIP LOCKED
            )
        END
    RETURNING
        h.transaction_id, h.producer_group_id, h.check_times, h.stored_at, h.log_segment, h.log_offset, h.message_id,
        h.topic_id, h.queue_id, h.tags_code, h.topic_id::bigint << 32 | h.queue_id AS queue
),

placed AS MATERIALIZED (
    SELECT
        e.*,
        CASE
            WHEN e.decision = 'COMMIT' THEN (SELECT t.queue_offset FROM tail AS t WHERE t.queue = e.queue) + 1
        END AS queue_offset
    FROM (SELECT d.*, %(decision)b::text AS decision, %(turn)b::integer AS turn FROM ended AS d) AS e
),

recorded AS (
    INSERT INTO operation (
        segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
        stored_at, log_segment, log_offset, message_id, topic_id, queue_id, queue_offset, remark
    )
    SELECT
        %(segment_id)b::integer, nextval('operation_id'), p.transaction_id, p.producer_group_id, p.decision,
        %(decided_by)b::text, clock_timestamp(), p.check_times, p.stored_at, p.log_segment, p.log_offset,
        p.message_id, p.topic_id, p.queue_id, p.queue_offset, %(remark)b::text
    FROM placed AS p
)

SELECT
    int4send(p.turn) || uuid_send(p.message_id) || int4send(p.topic_id) || int4send(p.queue_id)
    || int8send(coalesce(p.queue_offset, -1)) AS ended,
    set_config(
        'mq.entries',
        CASE
            WHEN p.queue_offset IS NOT NULL
                THEN concat_ws(
                    ',', p.topic_id, p.queue_id, p.queue_offset, p.log_segment, p.log_offset, coalesce(p.tags_code, 0)
                )
            ELSE ''
        END,
        true
    ) AS entries
FROM placed AS p
