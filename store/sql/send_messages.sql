-- Append messages to the open segment and enter each in its queue, or in that of its delay level, at the next offset.
-- Left out are: messages whose queue is not locked here (register `mq.queues`) or has no entry in the segment yet, all of
-- a request of which one of the `repeatable` ids is stored, and all when the segment is no longer the open one. The
-- messages of one request go to one queue, so that all of them are stored or none. Safe because this snapshot is newer
-- than the locks: no other transaction reads the same highest offset. An id that another process stored meanwhile fails
-- the statement, and the batch is sent again.
-- A delayed message is entered with its time of delivery in ms, rounded up: it may be late by a part of a millisecond.
-- A column in which no message has a value comes as an empty array, of which each row is NULL: so do the queue of the
-- entries and the delay when nothing is delayed, and the number of the request when nothing is repeatable.
WITH open AS MATERIALIZED (SELECT s.id FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)s),

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

new AS MATERIALIZED (
    SELECT
        nextval('commit_log_offset') AS log_offset, coalesce(g.entry_topic_id, g.topic_id) AS topic_of_entry,
        coalesce(g.entry_queue_id, g.queue_id) AS queue_of_entry, g.*
    FROM unnest(
        %(topic_id)b::integer [], %(queue_id)b::integer [], %(message_id)b::uuid [], %(tags_code)b::bigint [],
        %(entry_topic_id)b::integer [], %(entry_queue_id)b::integer [], %(delay_seconds)b::double precision [],
        %(request)b::integer [], %(born_at)b::timestamptz [], %(tags)b::text [], %(keys)b::text [],
        %(sharding_key)b::text [], %(traceparent)b::text [], %(properties)b::bytea [], %(body)b::bytea [],
        %(body_form)b::text []
    ) WITH ORDINALITY AS g (
        topic_id, queue_id, message_id, tags_code, entry_topic_id, entry_queue_id, delay_seconds, request, born_at, tags,
        keys, sharding_key, traceparent, properties, body, body_form, place
    )
    WHERE
        EXISTS (SELECT FROM open)
        AND (
            (coalesce(g.entry_topic_id, g.topic_id), coalesce(g.entry_queue_id, g.queue_id))
            IN (SELECT t.topic_id, t.queue_id FROM tail AS t)
        ) IS TRUE
        AND g.request <> ALL(array(
            SELECT r.request
            FROM unnest(%(repeatable)b::uuid [], %(repeatable_request)b::integer []) AS r (message_id, request)
            INNER JOIN commit_log AS l ON r.message_id = l.message_id
            WHERE l.message_id = any(%(repeatable)b::uuid [])
        ))
),

stored AS (
    INSERT INTO commit_log (
        segment_id, log_offset, stored_at, born_at, topic_id, queue_id, message_id, tags, keys, sharding_key,
        traceparent, properties, body, body_form
    )
    SELECT
        %(segment_id)s, n.log_offset, now(), n.born_at, n.topic_id, n.queue_id, n.message_id, n.tags,
        string_to_array(n.keys, ' '), n.sharding_key, n.traceparent, n.properties, n.body,
        coalesce(n.body_form, 'text')
    FROM new AS n
),

placed AS MATERIALIZED (
    SELECT
        n.place, n.log_offset, n.topic_id, n.queue_id, n.tags_code, n.delay_seconds, n.topic_of_entry, n.queue_of_entry,
        t.queue_offset + row_number() OVER (PARTITION BY n.topic_of_entry, n.queue_of_entry ORDER BY n.place)
            AS queue_offset
    FROM new AS n
    INNER JOIN tail AS t ON n.topic_of_entry = t.topic_id AND n.queue_of_entry = t.queue_id
),

entered AS (
    INSERT INTO consume_queue (
        segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at,
        real_topic_id, real_queue_id, real_tags_code
    )
    SELECT
        %(segment_id)s, p.topic_of_entry, p.queue_of_entry, p.queue_offset, %(segment_id)s, p.log_offset,
        CASE
            WHEN p.delay_seconds IS NULL THEN coalesce(p.tags_code, 0)
            ELSE ceil(extract(EPOCH FROM now() + make_interval(secs => p.delay_seconds)) * 1000)::bigint
        END,
        0, clock_timestamp(),
        CASE WHEN p.delay_seconds IS NOT NULL THEN p.topic_id END,
        CASE WHEN p.delay_seconds IS NOT NULL THEN p.queue_id END,
        CASE WHEN p.delay_seconds IS NOT NULL THEN coalesce(p.tags_code, 0) END
    FROM placed AS p
)

SELECT
    now() AS stored_at,
    string_agg(int4send(p.place::integer) || int8send(p.log_offset) || int8send(p.queue_offset), ''::bytea) AS placed
FROM placed AS p
