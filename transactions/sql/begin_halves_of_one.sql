-- Insert a half message like `begin_halves`, for a batch with one half message: each parameter is one value, not an
-- array. An array, a function in FROM and a node of a plan each take some microseconds to set up, and a lone caller
-- would wait for them. A test runs both statements on the same rows: change both.
WITH new AS MATERIALIZED (
    SELECT
        g.transaction_id,
        CASE
            WHEN
                EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)b::integer)
                AND %(producer_group_id)b::integer = any(array(
                    SELECT p.id
                    FROM producer_group AS p
                    WHERE p.id = %(group_ids)b::integer
                    ORDER BY p.id
                    FOR KEY SHARE SKIP LOCKED
                ))
                AND %(message_id)b::uuid <> ALL(array(
                    SELECT l.message_id FROM commit_log AS l WHERE l.message_id = %(repeatable)b::uuid
                ))
                AND g.transaction_id <> ALL(array(
                    SELECT h.transaction_id
                    FROM half_message AS h
                    WHERE h.transaction_id = %(repeatable_transactions)b::uuid
                    UNION ALL
                    SELECT o.transaction_id
                    FROM operation AS o
                    WHERE
                        o.transaction_id = %(repeatable_transactions)b::uuid
                        AND o.decision IN ('COMMIT', 'ROLLBACK')
                ))
                THEN nextval('commit_log_offset')
        END AS log_offset
    FROM (SELECT %(transaction_id)b::uuid AS transaction_id) AS g
),

kept AS (
    INSERT INTO half_message (
        transaction_id, producer_group_id, endpoint_id, stored_at, immunity_seconds, next_check_at, check_times,
        exhausted, log_segment, log_offset, message_id, topic_id, queue_id, tags_code, line, api_key_id
    )
    SELECT
        n.transaction_id, %(producer_group_id)b::integer, %(endpoint_id)b::integer, now(),
        %(immunity_seconds)b::double precision, now() + make_interval(secs => %(immunity_seconds)b::double precision),
        0, false, %(segment_id)b::integer, n.log_offset, %(message_id)b::uuid, %(topic_id)b::integer,
        %(queue_id)b::integer, nullif(%(tags_code)b::bigint, 0), %(line)b::integer, %(api_key_id)b::bigint
    FROM new AS n
    WHERE n.log_offset IS NOT NULL
)

SELECT
    now() AS stored_at,
    set_config('mq.appended', array(SELECT n.log_offset FROM new AS n)::text, true) AS appended
