-- Append messages to the open segment, without those of the `repeatable` ids that are stored, and without the places that the
-- register `mq.refused` names. The register `mq.appended` hands the log offsets on by place, NULL for a message that was
-- left out. Safe as `append_messages` is: the writers are joined, and when the segment is no longer the open one nothing
-- is appended. An id that another process stored meanwhile fails the statement, and the batch is sent again.
WITH open AS MATERIALIZED (SELECT s.id FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)s),

new AS MATERIALIZED (
    SELECT
        CASE
            WHEN
                EXISTS (SELECT FROM open)
                AND g.message_id <> ALL(array(
                    SELECT l.message_id FROM commit_log AS l WHERE l.message_id = any(%(repeatable)b::uuid [])
                ))
                AND (g.place = any((SELECT nullif(current_setting('mq.refused', true), '')::bigint [])::bigint [])) IS NOT TRUE
                THEN nextval('commit_log_offset')
        END AS log_offset,
        g.*
    FROM unnest(
        %(topic_id)b::integer [], %(queue_id)b::integer [], %(message_id)b::uuid [], %(born_at)b::timestamptz [],
        %(tags)b::text [], %(keys)b::text [], %(sharding_key)b::text [], %(traceparent)b::text [],
        %(properties)b::bytea [], %(body)b::bytea [], %(body_form)b::text [], %(transaction_id)b::uuid [],
        %(producer_group_id)b::integer []
    ) WITH ORDINALITY AS g (
        topic_id, queue_id, message_id, born_at, tags, keys, sharding_key, traceparent, properties, body, body_form,
        transaction_id, producer_group_id, place
    )
),

stored AS (
    INSERT INTO commit_log (
        segment_id, log_offset, stored_at, born_at, topic_id, queue_id, message_id, transaction_id, producer_group_id,
        tags, keys, sharding_key, traceparent, properties, body, body_form
    )
    SELECT
        %(segment_id)s, n.log_offset, now(), n.born_at, n.topic_id, n.queue_id, n.message_id, n.transaction_id,
        n.producer_group_id, n.tags, string_to_array(n.keys, ' '), n.sharding_key, n.traceparent, n.properties, n.body,
        coalesce(n.body_form, 'text')
    FROM new AS n
    WHERE n.log_offset IS NOT NULL
)

SELECT
    now() AS stored_at,
    string_agg(int8send(coalesce(n.log_offset, -1)), ''::bytea ORDER BY n.place) AS log_offsets,
    set_config('mq.appended', array_agg(n.log_offset ORDER BY n.place)::text, true) AS appended
FROM new AS n
