-- End pending transactions of one message: this delete is the decision, and its operation is recorded with it. Left out, and
-- judged elsewhere: rows that another session has locked (they are not waited for), rows of another group or offset,
-- discarded ones, those of several messages, and for a commit those with delays, those whose body lies too far back, and
-- those whose queue is not locked here (register `mq.queues`) or has no entry in the open segment yet; all, when the segment
-- is no longer the open one. Each row is probed by its id; `discarded_at` is
-- within a CASE, because a plan made while the table was empty would walk the partial index of due checks instead.
-- The queue offsets are computed under the locks of the queues, which are older than this snapshot; the register
-- `mq.entries` hands them to the statement that enters them, as one array per column.
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

held AS MATERIALIZED (
    SELECT a.decision, a.decided_by, a.remark, a.place, p.half, t.queue_offset
    FROM unnest(
        %(transaction_id)b::uuid [], %(group_id)b::integer [], %(log_offset)b::bigint [], %(decision)b::text [],
        %(decided_by)b::text [], %(remark)b::text []
    ) WITH ORDINALITY AS a (transaction_id, group_id, log_offset, decision, decided_by, remark, place)
    CROSS JOIN LATERAL (
        SELECT h.ctid AS half, h.topic_ids[1] AS topic_id, h.queue_ids[1] AS queue_id
        FROM half_message AS h
        WHERE
            h.transaction_id = a.transaction_id
            AND (a.group_id IS NULL OR h.producer_group_id = a.group_id)
            AND (a.log_offset IS NULL OR h.log_offsets[1] = a.log_offset)
            AND cardinality(h.log_offsets) = 1
            AND CASE
                WHEN h.discarded_at IS NOT NULL THEN false
                ELSE a.decision = 'ROLLBACK' OR (h.delays IS NULL AND h.log_segment >= %(segment_id)s - 1)
            END
        FOR UPDATE SKIP LOCKED
    ) AS p
    LEFT JOIN tail AS t ON a.decision = 'COMMIT' AND p.topic_id = t.topic_id AND p.queue_id = t.queue_id
    WHERE
        EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)s)
        AND (a.decision = 'ROLLBACK' OR t.queue_offset IS NOT NULL)
),

ended AS (
    DELETE FROM half_message AS h
    USING held AS l
    WHERE h.ctid = l.half
    RETURNING h.*, l.decision, l.decided_by, l.remark, l.place, l.queue_offset AS tail
),

placed AS MATERIALIZED (
    SELECT
        e.*, e.topic_ids[1] AS topic_id, e.queue_ids[1] AS queue_id,
        e.tail + row_number() OVER (PARTITION BY e.topic_ids, e.queue_ids, e.decision ORDER BY e.place) AS queue_offset
    FROM ended AS e
),

recorded AS (
    INSERT INTO operation (
        segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
        stored_at, log_segment, log_offsets, message_ids, topic_ids, queue_ids, queue_offsets, remark
    )
    SELECT
        %(segment_id)s, nextval('operation_id'), p.transaction_id, p.producer_group_id, p.decision, p.decided_by,
        clock_timestamp(), p.check_times, p.stored_at, p.log_segment, p.log_offsets, p.message_ids, p.topic_ids,
        p.queue_ids, CASE WHEN p.decision = 'COMMIT' THEN ARRAY[p.queue_offset] END, p.remark
    FROM placed AS p
)

SELECT
    string_agg(
        int4send(p.place::integer) || uuid_send(p.message_ids[1]) || int4send(p.topic_id) || int4send(p.queue_id)
        || int8send(coalesce(p.queue_offset, -1)),
        ''::bytea
    ) AS ended,
    set_config(
        'mq.entries',
        coalesce(
            string_agg(
                concat_ws(' ', p.topic_id, p.queue_id, p.queue_offset, p.log_segment, p.log_offsets[1], p.tags_codes[1]), ','
            ) FILTER (WHERE p.decision = 'COMMIT'),
            ''
        ),
        true
    ) AS entries
FROM placed AS p
