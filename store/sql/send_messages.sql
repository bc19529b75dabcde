-- Append messages to the open segment and enter each in its queue, or in the queue of its delay level, at the next
-- offset. A message whose `queue` is 0 waits for a timer and gets no entry. Left out are: messages whose queue is not
-- locked here (register `mq.queues`) or has no entry in the segment yet; all messages of a request that `skip_stored`
-- has found; messages whose time of delivery is over or too far ahead; and all messages if the segment is no longer the
-- open one. The messages of one request have one queue, so either all or none of them are stored. Safe because this
-- snapshot is newer than the locks: no other transaction reads the same highest offset. If another process has stored
-- one of the ids meanwhile, the statement fails, and the batch is sent again. The array of queues has each queue once,
-- and `queue` is the number of a message's queue in it. `rank` is the number of the message among the messages of its
-- queue, counted from the highest offset on; messages of earlier requests that are left out (register `mq.skipped`, by
-- request) are subtracted. So nothing is sorted by message, and no row is kept twice. A delayed message is entered with
-- its time of delivery in ms, rounded up, so it may be late by a part of a millisecond. The register `mq.timers` passes
-- on which messages with a timer are stored: `number:log_offset,…`. A column in which all values are NULL is passed as
-- an empty array: for instance the delay and the message's own queue if no message is delayed, and the number of the
-- request if no message may be a repetition.
-- Row: When messages were stored, and packed for each stored message: its number, log offset and queue offset. The
--    queue offset of a message that waits for its timer is -1.
-- Null: offsets, timers.
WITH tail AS MATERIALIZED (
    SELECT array_agg(coalesce(newest.queue_offset, -1) ORDER BY q.number) AS offsets
    FROM unnest(%(entry_topic_id)b::integer [], %(entry_queue_id)b::integer []) WITH ORDINALITY
        AS q (topic_id, queue_id, number)
    LEFT JOIN LATERAL (
        SELECT c.queue_offset
        FROM consume_queue AS c
        WHERE c.segment_id = %(segment_id)s AND c.topic_id = q.topic_id AND c.queue_id = q.queue_id
        ORDER BY c.queue_offset DESC
        LIMIT 1
    ) AS newest
        ON
            (q.topic_id::bigint << 32 | q.queue_id) = any(nullif(current_setting('mq.queues', true), '')::bigint [])
            AND EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)s)
),

new AS MATERIALIZED (
    SELECT
        nextval('commit_log_offset') AS log_offset,
        (SELECT t.offsets FROM tail AS t)[g.queue] + g.rank
            - coalesce((SELECT nullif(current_setting('mq.skipped', true), '')::bigint [])[g.request], 0)
            AS queue_offset,
        (%(entry_topic_id)b::integer [])[g.queue] AS entry_topic_id,
        (%(entry_queue_id)b::integer [])[g.queue] AS entry_queue_id, g.*
    FROM unnest(
        %(queue)b::integer [], %(rank)b::integer [], %(request)b::integer [], %(topic_id)b::integer [],
        %(queue_id)b::integer [], %(delay_seconds)b::double precision [], %(deliver_at)b::timestamptz [],
        %(message_id)b::uuid [], %(tags_code)b::bigint [], %(born_at)b::timestamptz [], %(tags)b::text [], %(keys)b::text [],
        %(sharding_key)b::text [], %(traceparent)b::text [], %(properties)b::bytea [], %(body)b::bytea [],
        %(body_form)b::text []
    ) WITH ORDINALITY AS g (
        queue, rank, request, topic_id, queue_id, delay_seconds, deliver_at, message_id, tags_code, born_at, tags, keys,
        sharding_key, traceparent, properties, body, body_form, number
    )
    WHERE
        (
            (SELECT t.offsets FROM tail AS t)[g.queue] >= 0
            OR (
                g.queue = 0 AND EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)s)
                AND coalesce(
                    g.deliver_at > now()
                    AND g.deliver_at <= now() + make_interval(secs => %(max_delay_seconds)b::double precision),
                    true
                )
            )
        )
        AND coalesce((SELECT nullif(current_setting('mq.skipped', true), '')::bigint [])[g.request], 0) >= 0
),

stored AS (
    INSERT INTO commit_log (
        segment_id, log_offset, stored_at, born_at, topic_id, queue_id, message_id, tags, keys, sharding_key,
        traceparent, properties, body, body_form
    )
    SELECT
        %(segment_id)s, n.log_offset, now(), n.born_at, coalesce(n.topic_id, n.entry_topic_id),
        coalesce(n.queue_id, n.entry_queue_id), n.message_id, n.tags, string_to_array(n.keys, ' '), n.sharding_key,
        n.traceparent, n.properties, n.body, coalesce(n.body_form, 'text')
    FROM new AS n
),

entered AS (
    INSERT INTO consume_queue (
        segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at,
        real_topic_id, real_queue_id, real_tags_code
    )
    SELECT
        %(segment_id)s, n.entry_topic_id, n.entry_queue_id, n.queue_offset, %(segment_id)s, n.log_offset,
        CASE
            WHEN n.delay_seconds IS NULL THEN coalesce(n.tags_code, 0)
            ELSE ceil(extract(EPOCH FROM now() + make_interval(secs => n.delay_seconds)) * 1000)::bigint
        END,
        0, clock_timestamp(),
        CASE WHEN n.delay_seconds IS NOT NULL THEN n.topic_id END,
        CASE WHEN n.delay_seconds IS NOT NULL THEN n.queue_id END,
        CASE WHEN n.delay_seconds IS NOT NULL THEN coalesce(n.tags_code, 0) END
    FROM new AS n
    WHERE n.queue > 0
)

SELECT
    now() AS stored_at,
    string_agg(
        int4send(n.number::integer) || int8send(n.log_offset) || int8send(coalesce(n.queue_offset, -1)), ''::bytea
    ) AS offsets,
    CASE WHEN bool_or(n.queue = 0) THEN
        set_config('mq.timers', string_agg(n.number || ':' || n.log_offset, ',') FILTER (WHERE n.queue = 0), true)
    END AS timers
FROM new AS n
