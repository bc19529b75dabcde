-- End pending half messages: this delete is the decision, and its operation is recorded with it. Left out, and judged
-- elsewhere: rows that another session has locked (they are not waited for), rows of another group or offset, discarded
-- ones, and for a commit those with delays, those whose body lies too far back, and those whose queue is not locked here
-- (register `mq.queues`) or has no entry in the open segment yet; all, when the segment is no longer the open one.
-- The queue offsets are computed under the locks of the queues, which are older than this snapshot; the register
-- `mq.entries` hands them to the statement that enters them.
WITH asked AS MATERIALIZED (
    SELECT *
    FROM unnest(
        %(transaction_id)b::uuid [], %(group_id)b::integer [], %(log_offset)b::bigint [], %(decision)b::text [],
        %(decided_by)b::text [], %(remark)b::text []
    ) WITH ORDINALITY AS a (transaction_id, group_id, log_offset, decision, decided_by, remark, place)
),

open AS MATERIALIZED (SELECT s.id FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)s),

tail AS MATERIALIZED (
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

ended AS (
    DELETE FROM half_message AS h
    WHERE h.ctid = any(array(
        SELECT p.ctid
        FROM half_message AS p
        INNER JOIN asked AS a ON p.transaction_id = a.transaction_id
        WHERE
            p.transaction_id = any(%(transaction_id)b::uuid [])
            AND (a.group_id IS NULL OR p.producer_group_id = a.group_id)
            AND (a.log_offset IS NULL OR a.log_offset = any(p.log_offsets))
            AND p.discarded_at IS NULL
            AND EXISTS (SELECT FROM open)
            AND (
                a.decision = 'ROLLBACK'
                OR (
                    p.delays IS NULL
                    AND p.log_segment >= %(segment_id)s - 1
                    AND CASE
                        WHEN cardinality(p.topic_ids) = 1
                            THEN (p.topic_ids[1], p.queue_ids[1]) IN (SELECT t.topic_id, t.queue_id FROM tail AS t)
                        ELSE NOT EXISTS (
                            SELECT
                            FROM unnest(p.topic_ids, p.queue_ids) AS m (topic_id, queue_id)
                            WHERE ((m.topic_id, m.queue_id) IN (SELECT t.topic_id, t.queue_id FROM tail AS t)) IS NOT TRUE
                        )
                    END
                )
            )
        FOR UPDATE OF p SKIP LOCKED
    ))
    RETURNING
        h.transaction_id, h.producer_group_id, h.stored_at, h.check_times, h.log_segment, h.log_offsets, h.message_ids,
        h.topic_ids, h.queue_ids, h.tags_codes
),

decided AS MATERIALIZED (
    SELECT e.*, a.place, a.decision, a.decided_by, a.remark
    FROM ended AS e
    INNER JOIN asked AS a USING (transaction_id)
),

spread AS MATERIALIZED (
    SELECT
        d.place, d.log_segment, generate_subscripts(d.topic_ids, 1) AS n, unnest(d.topic_ids) AS topic_id,
        unnest(d.queue_ids) AS queue_id, unnest(d.log_offsets) AS log_offset, unnest(d.tags_codes) AS tags_code
    FROM decided AS d
    WHERE d.decision = 'COMMIT'
),

placed AS MATERIALIZED (
    SELECT
        m.*,
        t.queue_offset + row_number() OVER (PARTITION BY m.topic_id, m.queue_id ORDER BY m.place, m.n) AS queue_offset
    FROM spread AS m
    INNER JOIN tail AS t ON m.topic_id = t.topic_id AND m.queue_id = t.queue_id
),

offsets AS MATERIALIZED (
    SELECT p.place, array_agg(p.queue_offset ORDER BY p.n) AS queue_offsets
    FROM placed AS p
    GROUP BY p.place
),

recorded AS (
    INSERT INTO operation (
        segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
        stored_at, log_segment, log_offsets, message_ids, topic_ids, queue_ids, queue_offsets, remark
    )
    SELECT
        %(segment_id)s, nextval('operation_id'), d.transaction_id, d.producer_group_id, d.decision, d.decided_by,
        clock_timestamp(), d.check_times, d.stored_at, d.log_segment, d.log_offsets, d.message_ids, d.topic_ids,
        d.queue_ids, o.queue_offsets, d.remark
    FROM decided AS d
    LEFT JOIN offsets AS o USING (place)
)

SELECT
    string_agg(
        int4send(e.place::integer) || uuid_send(e.message_id) || int4send(e.topic_id) || int4send(e.queue_id)
        || int8send(coalesce(e.queue_offset, -1)),
        ''::bytea
    ) AS ended,
    set_config('mq.entries', (
        SELECT coalesce(
            string_agg(
                concat_ws(' ', p.topic_id, p.queue_id, p.queue_offset, p.log_segment, p.log_offset, p.tags_code), ','
            ),
            ''
        )
        FROM placed AS p
    ), true) AS entries
FROM (
    SELECT
        d.place, unnest(d.message_ids) AS message_id, unnest(d.topic_ids) AS topic_id, unnest(d.queue_ids) AS queue_id,
        unnest(o.queue_offsets) AS queue_offset
    FROM decided AS d
    LEFT JOIN offsets AS o USING (place)
) AS e
