-- End pending transactions of one message: this delete is the decision, and its operation is recorded with it. Left
-- out, and answered by the stepwise writer, are: rows that another session has locked, for which this statement does
-- not wait; rows of another group or log offset; discarded transactions; transactions of several messages; for a
-- commit, messages with a delay, messages whose segment is too old for an entry, and messages whose queue is not locked
-- here (register `mq.queues`) or has no entry in the open segment yet; and all rows if the segment is no longer the
-- open one. The rows are probed by their ids as an array, and the condition on `discarded_at` is written as a CASE:
-- otherwise a plan that was made while the table was empty would read the whole table or the partial index of due
-- checks. The ids are sorted, so the number of a row is found by binary search (`width_bucket`), and rows are deleted
-- in the order of their ids, in which `end_halves` locks them: no two batches deadlock. `turn` is the number of the end
-- in its batch, in whose order the queue offsets are given. A row without `xmax` was not locked by any session when it
-- was read, as almost all are. Such a row is deleted without being locked first, which would cost a record of the WAL.
-- If a session locks the row meanwhile, the delete waits, up to the lock time-out of a batch, then reads the row again,
-- and ends the transaction only if it is still pending. The queue offsets are computed under the locks of the queues,
-- which are older than this snapshot. The register `mq.entries` passes them on to the statement that enters the
-- messages, six numbers for each.
-- Row: For each message of a decided transaction, packed: the turn of its end, id, topic, queue and queue offset.
-- Null: ended.
WITH tail AS MATERIALIZED (
    SELECT
        l.queues,
        array(
            SELECT (
                SELECT c.queue_offset
                FROM consume_queue AS c
                WHERE
                    c.segment_id = %(segment_id)b::integer AND c.topic_id = (q.queue >> 32)::integer
                    AND c.queue_id = (q.queue & 4294967295)::integer
                ORDER BY c.queue_offset DESC
                LIMIT 1
            )
            FROM unnest(l.queues) AS q (queue)
        ) AS offsets
    FROM (SELECT nullif(current_setting('mq.queues', true), '')::bigint [] AS queues OFFSET 0) AS l
),

ended AS (
    DELETE FROM half_message AS h
    WHERE
        h.transaction_id = any(%(transaction_id)b::uuid [])
        AND EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)b::integer)
        AND h.producer_group_id = coalesce(
            (%(group_id)b::integer [])[width_bucket(h.transaction_id, %(transaction_id)b::uuid [])],
            h.producer_group_id
        )
        AND h.log_offset = coalesce(
            (%(log_offset)b::bigint [])[width_bucket(h.transaction_id, %(transaction_id)b::uuid [])], h.log_offset
        )
        AND CASE
            WHEN h.discarded_at IS NOT NULL THEN false
            WHEN (%(decision)b::text [])[width_bucket(h.transaction_id, %(transaction_id)b::uuid [])] = 'ROLLBACK'
                THEN true
            ELSE
                h.delays IS NULL AND h.log_segment >= %(segment_id)b::integer - 1
                AND (SELECT t.offsets FROM tail AS t)[
                    array_position((SELECT t.queues FROM tail AS t), h.topic_id::bigint << 32 | h.queue_id)
                ] IS NOT NULL
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
        h.topic_id, h.queue_id, h.tags_code,
        width_bucket(h.transaction_id, %(transaction_id)b::uuid []) AS number,
        array_position((SELECT t.queues FROM tail AS t), h.topic_id::bigint << 32 | h.queue_id) AS queue
),

placed AS MATERIALIZED (
    SELECT
        e.*,
        CASE
            WHEN e.decision = 'COMMIT'
                THEN
                    (SELECT t.offsets FROM tail AS t)[e.queue]
                    + row_number() OVER (PARTITION BY e.queue, e.decision ORDER BY e.turn)
        END AS queue_offset
    FROM (
        SELECT
            d.*, (%(decision)b::text [])[d.number] AS decision, (%(turn)b::integer [])[d.number] AS turn
        FROM ended AS d
    ) AS e
),

recorded AS (
    INSERT INTO operation (
        segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
        stored_at, log_segment, log_offset, message_id, topic_id, queue_id, queue_offset, remark
    )
    SELECT
        %(segment_id)b::integer, nextval('operation_id'), p.transaction_id, p.producer_group_id, p.decision,
        (%(decided_by)b::text [])[p.number], clock_timestamp(), p.check_times, p.stored_at, p.log_segment, p.log_offset,
        p.message_id, p.topic_id, p.queue_id, p.queue_offset, (%(remark)b::text [])[p.number]
    FROM placed AS p
)

SELECT
    string_agg(
        int4send(p.turn) || uuid_send(p.message_id) || int4send(p.topic_id) || int4send(p.queue_id)
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
            ) FILTER (WHERE p.queue_offset IS NOT NULL),
            ''
        ),
        true
    ) AS entries
FROM placed AS p
