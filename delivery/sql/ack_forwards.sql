-- Ack the deliveries of forwards, numbered from 1: all of a forward, or none. A forward is left out in these cases: a
-- handle proves no delivery; another session has locked its row; a queue is not locked here (register `mq.queues`), or
-- has no entry in the segment yet; a message id is stored already. All forwards are left out if the segment is no
-- longer the open one. The register `mq.left_out` passes on the numbers of forwards that are left out. Then
-- `send_messages` stores the messages of the other forwards; it can store all of them, because the locks of log and
-- queues keep these facts true. A handle leads to a bundle, or to a receipt if the delivery was never in a bundle or
-- has left it. Rows are locked before they count. A row that another transaction has changed since the snapshot is not
-- found: its forward is left out, too. No row is waited for, because a stepwise batch locks its queues after its rows.
-- Two forwards may have deliveries of one bundle, but no delivery belongs to two forwards.
WITH asked AS MATERIALIZED (
    SELECT a.*, f.tid, f.unsettled, coalesce(f.unsettled & a.places, 0) AS bundled
    FROM unnest(
        %(forward)b::integer [], %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [],
        %(first_offset)b::bigint [], %(nonce)b::bigint [], %(places)b::bigint []
    ) WITH ORDINALITY AS a (forward, group_id, topic_id, queue_id, first_offset, nonce, places, number)
    LEFT JOIN LATERAL (
        SELECT b.ctid AS tid, b.unsettled
        FROM bundle AS b
        WHERE
            b.group_id = a.group_id AND b.topic_id = a.topic_id AND b.queue_id = a.queue_id
            AND b.first_offset = a.first_offset AND b.nonce = a.nonce AND b.expires_at > now()
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS f ON (SELECT true FROM bundle AS seen WHERE seen.ctid = f.tid)
),

apart AS MATERIALIZED (
    SELECT a.forward, a.number, p.place, f.tid
    FROM asked AS a
    CROSS JOIN LATERAL generate_series(0, 63) AS p (place)
    CROSS JOIN LATERAL (
        SELECT r.ctid AS tid
        FROM receipt AS r
        WHERE
            r.group_id = a.group_id AND r.topic_id = a.topic_id AND r.queue_id = a.queue_id
            AND r.queue_offset = a.first_offset + p.place
            AND (r.nonce = a.nonce AND r.state = 'flight' AND r.expires_at > now()) IS TRUE
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS f
    WHERE
        a.places <> a.bundled AND ((a.places & ~a.bundled) >> p.place) & 1 = 1
        AND (SELECT true FROM receipt AS seen WHERE seen.ctid = f.tid)
),

left_out AS MATERIALIZED (
    SELECT a.forward
    FROM asked AS a
    WHERE
        a.places <> a.bundled
        | coalesce((SELECT bit_or(1::bigint << p.place) FROM apart AS p WHERE p.number = a.number), 0)
        OR NOT EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)s)
    UNION
    SELECT q.forward
    FROM unnest(
        %(entry_forward)b::integer [], %(entry_topic_id)b::integer [], %(entry_queue_id)b::integer []
    ) AS q (forward, topic_id, queue_id)
    WHERE
        (q.topic_id::bigint << 32 | q.queue_id) = any(
            coalesce(nullif(current_setting('mq.queues', true), ''), '{}')::bigint []
        ) IS NOT TRUE
        OR NOT EXISTS (
            SELECT FROM consume_queue AS c
            WHERE c.segment_id = %(segment_id)s AND c.topic_id = q.topic_id AND c.queue_id = q.queue_id
        )
    UNION
    SELECT k.forward
    FROM unnest(%(message_id)b::uuid [], %(message_forward)b::integer []) AS k (message_id, forward)
    INNER JOIN commit_log AS l ON k.message_id = l.message_id
    WHERE l.message_id = any(%(message_id)b::uuid [])
),

acked AS MATERIALIZED (
    SELECT a.tid, a.unsettled, bit_or(a.bundled) AS places
    FROM asked AS a
    WHERE a.bundled <> 0 AND a.forward NOT IN (SELECT o.forward FROM left_out AS o)
    GROUP BY a.tid, a.unsettled
),

emptied AS (
    DELETE FROM bundle AS b
    USING acked AS a
    WHERE b.ctid = a.tid AND a.unsettled & ~a.places = 0
),

shortened AS (
    UPDATE bundle AS b
    SET unsettled = a.unsettled & ~a.places
    FROM acked AS a
    WHERE b.ctid = a.tid AND a.unsettled & ~a.places <> 0
),

gone AS (
    DELETE FROM receipt AS r
    USING apart AS p
    WHERE r.ctid = p.tid AND p.forward NOT IN (SELECT o.forward FROM left_out AS o)
)

SELECT set_config('mq.left_out', coalesce(array_agg(o.forward)::text, ''), true) AS left_out
FROM left_out AS o
