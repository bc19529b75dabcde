-- Insert half messages of one message each, and take their log offsets, at which the next statement appends the
-- messages: the register `mq.appended` has them by number, NULL for a message that is left out. Left out are: messages
-- whose transaction is known, undecided or decided; messages that are stored already; messages whose producer group is
-- deleted, or locked by a session that deletes it; and all messages if the segment is no longer the open one. The
-- groups are held as in `hold_groups`, so none is deleted before this transaction ends. The database's clock decides
-- when the first check is due. If another process stores an id after this snapshot, the statement that appends fails,
-- and the batch is sent again. The columns are arrays that are read by number: as functions in FROM each column would
-- take 3 us more to set up, and its rows would be kept. `new` is built and read in the order of the numbers, without a
-- join that would sort it.
-- Row: When half messages were stored, and the text of an array of their log offsets, NULL for a left-out message.
WITH new AS MATERIALIZED (
    SELECT
        g.transaction_id, g.number,
        CASE
            WHEN
                EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)b::integer)
                AND (%(producer_group_id)b::integer [])[g.number] = any(array(
                    SELECT p.id
                    FROM producer_group AS p
                    WHERE p.id = any(%(group_ids)b::integer [])
                    ORDER BY p.id
                    FOR KEY SHARE SKIP LOCKED
                ))
                AND (%(message_id)b::uuid [])[g.number] <> ALL(array(
                    SELECT l.message_id FROM commit_log AS l WHERE l.message_id = any(%(repeatable)b::uuid [])
                ))
                AND g.transaction_id <> ALL(array(
                    SELECT h.transaction_id
                    FROM half_message AS h
                    WHERE h.transaction_id = any(%(repeatable_transactions)b::uuid [])
                    UNION ALL
                    SELECT o.transaction_id
                    FROM operation AS o
                    WHERE
                        o.transaction_id = any(%(repeatable_transactions)b::uuid [])
                        AND o.decision IN ('COMMIT', 'ROLLBACK')
                ))
                THEN nextval('commit_log_offset')
        END AS log_offset
    FROM unnest(%(transaction_id)b::uuid []) WITH ORDINALITY AS g (transaction_id, number)
),

kept AS (
    INSERT INTO half_message (
        transaction_id, producer_group_id, endpoint_id, stored_at, immunity_seconds, next_check_at, check_times,
        exhausted, log_segment, log_offset, message_id, topic_id, queue_id, tags_code, line, api_key_id
    )
    SELECT
        n.transaction_id, (%(producer_group_id)b::integer [])[n.number], (%(endpoint_id)b::integer [])[n.number], now(),
        (%(immunity_seconds)b::double precision [])[n.number],
        now() + make_interval(secs => (%(immunity_seconds)b::double precision [])[n.number]), 0, false,
        %(segment_id)b::integer, n.log_offset, (%(message_id)b::uuid [])[n.number], (%(topic_id)b::integer [])[n.number],
        (%(queue_id)b::integer [])[n.number], nullif((%(tags_code)b::bigint [])[n.number], 0),
        (%(line)b::integer [])[n.number], (%(api_key_id)b::bigint [])[n.number]
    FROM new AS n
    WHERE n.log_offset IS NOT NULL
)

SELECT
    now() AS stored_at,
    set_config('mq.appended', array(SELECT n.log_offset FROM new AS n)::text, true) AS appended
