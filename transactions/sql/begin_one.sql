-- Keep one message as a half message and take its log offset, at which the statement behind appends it (register
-- `mq.appended`): as `refuse_begun` and `keep_appended`, whose plans for many take 40 us more for one. Nothing is kept when
-- the transaction is known, undecided or decided, when the message is stored, when the segment is no longer the open one, or
-- when the producer group is gone, or locked by a session that deletes it. The group is held as in `hold_groups`. The
-- database's clock decides when the first check is due.
WITH held AS MATERIALIZED (
    SELECT g.id
    FROM producer_group AS g
    WHERE g.id = %(producer_group_id)b::integer
    FOR KEY SHARE SKIP LOCKED
)

INSERT INTO half_message (
    transaction_id, producer_group_id, endpoint_id, stored_at, immunity_seconds, next_check_at, check_times, exhausted,
    log_segment, log_offset, message_id, topic_id, queue_id, tags_code, line, api_key_id
)
SELECT
    %(transaction_id)b::uuid, %(producer_group_id)b::integer, %(endpoint_id)b::integer, now(),
    %(immunity_seconds)b::double precision, now() + make_interval(secs => %(immunity_seconds)b::double precision), 0,
    false, s.id, nextval('commit_log_offset'), %(message_id)b::uuid, %(topic_id)b::integer, %(queue_id)b::integer,
    nullif(%(tags_code)b::bigint, 0), %(line)b::integer, %(api_key_id)b::bigint
FROM segment AS s
WHERE
    s.state = 'open' AND s.id = %(segment_id)b::integer
    AND EXISTS (SELECT FROM held)
    AND NOT EXISTS (SELECT FROM commit_log AS l WHERE l.message_id = %(repeatable)b::uuid)
    AND NOT EXISTS (SELECT FROM half_message AS h WHERE h.transaction_id = %(repeatable_transaction)b::uuid)
    AND NOT EXISTS (
        SELECT
        FROM operation AS o
        WHERE o.transaction_id = %(repeatable_transaction)b::uuid AND o.decision IN ('COMMIT', 'ROLLBACK')
    )
RETURNING stored_at, log_offset, set_config('mq.appended', log_offset::text, true) AS appended
