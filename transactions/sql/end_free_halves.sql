-- End pending transactions of one message: this delete is the decision, and its operation is recorded with it. Left out, and
-- answered by the stepwise writer: rows that another session has locked (they are not waited for), rows of another group or offset,
-- discarded ones, those of several messages, and for a commit those with delays, those whose body lies too far back, and
-- those whose queue is not locked here (register `mq.queues`) or has no entry in the open segment yet; all, when the segment
-- is no longer the open one. Each row is probed by its id, in a subquery that OFFSET keeps apart, and `discarded_at` is
-- within a CASE: a plan made while the table was empty would walk all of it, or the partial index of due checks.
-- A row without `xmax` was locked by no session when it was read, as almost all are, and is deleted without a lock of its
-- own before, which would be a record of the WAL. A session that locks one in the meantime is waited for, for the lock
-- time-out of a batch; the delete looks at the row that this session left, and ends it only if it is pending still. Rows
-- are deleted in the order of their places, so that no two batches wait for each other.
-- The queue offsets are computed under the locks of the queues, which are older than this snapshot; the register
-- `mq.entries` hands them to the statement that enters them, six numbers for each.
WITH tail AS MATERIALIZED (
    SELECT q.topic_id, q.queue_id, newest.queue_offset
    FROM (
        SELECT split_part(l.named, ':', 1)::integer AS topic_id, split_part(l.named, ':', 2)::integer AS queue_id
        FROM string_to_table(nullif(current_setting('mq.queues', true), ''), ',') AS l (named)
    ) AS q
    CROSS JOIN LATERAL (
        SELECT c.queue_offset
        FROM consume_queue AS c
        WHERE c.segment_id = %(segment_id)s AND c.topic_id = q.topic_id AND c.queue_id = q.queue_id
        ORDER BY c.queue_offset DESC
        LIMIT 1
    ) AS newest
),

found AS MATERIALIZED (
    SELECT a.decision, a.decided_by, a.remark, a.place, p.half, p.touched, t.queue_offset
    FROM unnest(
        %(transaction_id)b::uuid [], %(group_id)b::integer [], %(log_offset)b::bigint [], %(decision)b::text [],
        %(decided_by)b::text [], %(remark)b::text []
    ) WITH ORDINALITY AS a (transaction_id, group_id, log_offset, decision, decided_by, remark, place)
    CROSS JOIN LATERAL (
        SELECT h.ctid AS half, h.xmax <> 0 AS touched, h.topic_id, h.queue_id
        FROM half_message AS h
        WHERE
            h.transaction_id = a.transaction_id
            AND (a.group_id IS NULL OR h.producer_group_id = a.group_id)
            AND h.log_offset = coalesce(a.log_offset, h.log_offset)
            AND CASE
                WHEN h.discarded_at IS NOT NULL THEN false
                ELSE a.decision = 'ROLLBACK' OR (h.delays IS NULL AND h.log_segment >= %(segment_id)s - 1)
            END
        OFFSET 0
    ) AS p
    LEFT JOIN tail AS t ON a.decision = 'COMMIT' AND p.topic_id = t.topic_id AND p.queue_id = t.queue_id
    WHERE
        EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)s)
        AND (a.decision = 'ROLLBACK' OR t.queue_offset IS NOT NULL)
    ORDER BY p.half
),

taken AS MATERIALIZED (
    SELECT h.ctid AS half
    FROM half_message AS h
    WHERE h.ctid = any(array(SELECT f.half FROM found AS f WHERE f.touched))
    FOR UPDATE SKIP LOCKED
),

ended AS (
    DELETE FROM half_message AS h
    USING found AS f
    WHERE
        h.ctid = f.half AND CASE WHEN h.discarded_at IS NULL THEN true END
        AND (NOT f.touched OR f.half = any(array(SELECT t.half FROM taken AS t)))
    RETURNING
        h.transaction_id, h.producer_group_id, h.check_times, h.stored_at, h.log_segment, h.log_offset, h.message_id,
        h.topic_id, h.queue_id, h.tags_code, f.decision, f.decided_by, f.remark, f.place, f.queue_offset AS tail
),

placed AS MATERIALIZED (
    SELECT
        e.*,
        e.tail + row_number() OVER (PARTITION BY e.topic_id, e.queue_id, e.decision ORDER BY e.place) AS queue_offset
    FROM ended AS e
),

recorded AS (
    INSERT INTO operation (
        segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
        stored_at, log_segment, log_offset, message_id, topic_id, queue_id, queue_offset, remark
    )
    SELECT
        %(segment_id)s, nextval('operation_id'), p.transaction_id, p.producer_group_id, p.decision, p.decided_by,
        clock_timestamp(), p.check_times, p.stored_at, p.log_segment, p.log_offset, p.message_id, p.topic_id,
        p.queue_id, p.queue_offset, p.remark
    FROM placed AS p
)

SELECT
    string_agg(
        int4send(p.place::integer) || uuid_send(p.message_id) || int4send(p.topic_id) || int4send(p.queue_id)
        || int8send(coalesce(p.queue_offset, -1)),
        ''::bytea
    ) AS ended,
    set_config(
        'mq.entries',
        coalesce(
            string_agg(
                concat_ws(
                    ',', p.topic_id, p.queue_id, p.queue_offset, p.log_segment, p.log_offset, coalesce(p.tags_code, 0)
                ),
                ','
            ) FILTER (WHERE p.decision = 'COMMIT'),
            ''
        ),
        true
    ) AS entries
FROM placed AS p
