-- End one pending transaction of one message: as `end_free_halves`, whose plan for many takes 70 us more for one, and with
-- the same cases left out. The queue of a commit is a parameter, and has to be locked here (register `mq.queues`). A row
-- without `xmax`, as almost all have, was locked by no session and is deleted at once; another one is locked first, unless
-- another session has locked it. `discarded_at` is within a CASE: a plan made while the table was empty would walk the
-- partial index of due checks.
WITH tail AS MATERIALIZED (
    SELECT c.queue_offset
    FROM consume_queue AS c
    WHERE
        c.segment_id = %(segment_id)b::integer AND c.topic_id = %(topic_id)b::integer
        AND c.queue_id = %(queue_id)b::integer
        AND %(topic_id)b::integer || ':' || %(queue_id)b::integer
        = any(string_to_array(current_setting('mq.queues', true), ','))
    ORDER BY c.queue_offset DESC
    LIMIT 1
),

ended AS (
    DELETE FROM half_message AS h
    WHERE
        h.transaction_id = %(transaction_id)b::uuid
        AND (%(group_id)b::integer IS NULL OR h.producer_group_id = %(group_id)b::integer)
        AND h.log_offset = coalesce(%(log_offset)b::bigint, h.log_offset)
        AND EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)b::integer)
        AND CASE
            WHEN h.discarded_at IS NOT NULL THEN false
            WHEN %(decision)b::text = 'ROLLBACK' THEN true
            ELSE
                h.delays IS NULL AND h.log_segment >= %(segment_id)b::integer - 1
                AND h.topic_id = %(topic_id)b::integer AND h.queue_id = %(queue_id)b::integer
                AND EXISTS (SELECT FROM tail)
        END
        AND CASE
            WHEN h.xmax = 0 THEN true
            ELSE h.ctid = (
                SELECT t.ctid
                FROM half_message AS t
                WHERE t.transaction_id = %(transaction_id)b::uuid
                FOR UPDATE SKIP LOCKED
            )
        END
    RETURNING
        h.*, CASE WHEN %(decision)b::text = 'COMMIT' THEN (SELECT tail.queue_offset + 1 FROM tail) END AS queue_offset
),

recorded AS (
    INSERT INTO operation (
        segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
        stored_at, log_segment, log_offset, message_id, topic_id, queue_id, queue_offset, remark
    )
    SELECT
        %(segment_id)b::integer, nextval('operation_id'), e.transaction_id, e.producer_group_id, %(decision)b::text,
        %(decided_by)b::text, clock_timestamp(), e.check_times, e.stored_at, e.log_segment, e.log_offset, e.message_id,
        e.topic_id, e.queue_id, e.queue_offset, %(remark)b::text
    FROM ended AS e
)

SELECT
    int4send(1) || uuid_send(e.message_id) || int4send(e.topic_id) || int4send(e.queue_id)
    || int8send(coalesce(e.queue_offset, -1)) AS ended,
    set_config(
        'mq.entries',
        CASE
            WHEN e.queue_offset IS NULL THEN ''
            ELSE
                concat_ws(
                    ',', e.topic_id, e.queue_id, e.queue_offset, e.log_segment, e.log_offset, coalesce(e.tags_code, 0)
                )
        END,
        true
    ) AS entries
FROM ended AS e
