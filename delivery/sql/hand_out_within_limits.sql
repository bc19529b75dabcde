-- Hand out entries that a group with limits has read ahead of a topic, as hand_out_by_turns, of keys that the caller has
-- chosen in the order of their turns: at most `room` entries of each. The receipt of a delivery that counts has the value
-- by which the group's limits count it; such a delivery lies in no bundle. Deliveries use the rate of their value from
-- the time of this statement on, which is later than the lock of the group's progress that the caller holds.
WITH turn AS MATERIALIZED (
    SELECT k.*, least(%(wanted)s::bigint, k.room, 4 * (%(wanted)s::bigint / count(*) OVER () + 1)) AS share
    FROM unnest(
        %(fair_key)s::text [], %(value)s::text [], %(room)s::bigint [], %(is_counted)s::boolean [],
        %(token_seconds)s::double precision []
    ) WITH ORDINALITY AS k (fair_key, value, room, is_counted, token_seconds, number)
),

line AS MATERIALIZED (
    SELECT
        t.number, t.value, t.is_counted, t.token_seconds, r.tid, r.fair_key, r.queue_topic_id, r.queue_id, e.queue_offset,
        r.waits_before + e.place AS round
    FROM turn AS t
    CROSS JOIN LATERAL (
        SELECT
            w.*, sum(w.waits) OVER (
                ORDER BY w.log_segment, w.log_offset, w.queue_topic_id, w.queue_id, w.first_offset
            ) - w.waits AS waits_before
        FROM (
            SELECT s.*, s.ctid AS tid, cardinality(s.offsets) - s.taken AS waits
            FROM waiting AS s
            WHERE s.group_id = %(group_id)s AND s.topic_id = %(topic_id)s AND s.fair_key = t.fair_key
            ORDER BY s.log_segment, s.log_offset, s.queue_topic_id, s.queue_id, s.first_offset
            LIMIT
                CASE
                    WHEN (
                        SELECT sum(cardinality(f.offsets) - f.taken) >= t.share
                        FROM (
                            SELECT n.offsets, n.taken
                            FROM waiting AS n
                            WHERE n.group_id = %(group_id)s AND n.topic_id = %(topic_id)s AND n.fair_key = t.fair_key
                            ORDER BY n.log_segment, n.log_offset, n.queue_topic_id, n.queue_id, n.first_offset
                            LIMIT t.share / 32 + 2
                        ) AS f
                    ) THEN t.share / 32 + 2
                    ELSE t.share
                END
        ) AS w
    ) AS r
    CROSS JOIN LATERAL unnest(
        r.offsets[r.taken + 1:r.taken + (t.share - r.waits_before)::integer]
    ) WITH ORDINALITY AS e (queue_offset, place)
    WHERE r.waits_before < t.share
    ORDER BY round, t.number
    LIMIT %(wanted)s
),

found AS MATERIALIZED (
    SELECT
        l.value, l.is_counted, l.token_seconds, l.tid, l.fair_key, l.queue_topic_id, l.queue_id, l.queue_offset, q.queue,
        e.tags_code, e.reconsume_times,
        e.log_segment, e.log_offset, m.body_bytes, row_number() OVER turns AS place,
        coalesce(sum(m.body_bytes) OVER (turns ROWS UNBOUNDED PRECEDING), 0) AS bytes
    FROM line AS l
    INNER JOIN unnest(
        %(queue_topic_id)s::integer [], %(queue_id)s::integer []
    ) WITH ORDINALITY AS q (queue_topic_id, queue_id, queue)
        ON l.queue_topic_id = q.queue_topic_id AND l.queue_id = q.queue_id
    LEFT JOIN LATERAL (
        SELECT c.tags_code, c.reconsume_times, c.log_segment, c.log_offset
        FROM consume_queue AS c
        WHERE c.topic_id = l.queue_topic_id AND c.queue_id = l.queue_id AND c.queue_offset = l.queue_offset
        LIMIT 1
    ) AS e ON true
    LEFT JOIN LATERAL (
        SELECT octet_length(c.body) AS body_bytes FROM commit_log AS c
        WHERE c.segment_id = e.log_segment AND c.log_offset = e.log_offset
        LIMIT 1
    ) AS m ON true
    WINDOW turns AS (ORDER BY l.round, l.number)
),

-- Each retry has one receive; other entries share the receives. The entries that are handed out are of the first one's
-- kind, and entries of a key and queue are taken in order: after an entry of the other kind none is taken.
beside AS MATERIALIZED (
    SELECT
        f.*,
        CASE
            WHEN f.reconsume_times > 0 THEN f.place
            ELSE width_bucket(f.place - 1, %(wanted_end)s::bigint []) + 1
        END::integer AS receive,
        bool_or(coalesce(f.reconsume_times, 0) > 0) OVER (ORDER BY f.place)
        <> bool_and(coalesce(f.reconsume_times, 0) > 0) OVER (ORDER BY f.place) AS is_behind
    FROM found AS f
),

-- `is_marked`: as in hand_out, of the deliveries that do not count.
chosen AS MATERIALIZED (
    SELECT
        b.*,
        b.reconsume_times = 0 AND NOT b.is_counted
        AND count(*) FILTER (WHERE NOT b.is_counted) OVER (PARTITION BY b.receive) > 1 AND (
            SELECT coalesce(bool_and(h.bundles_at IS NOT DISTINCT FROM h.beaten_at), false)
            FROM heartbeat AS h
            WHERE h.beaten_at > now() - interval '10 minutes'
        ) AS is_marked,
        min(b.log_segment) OVER () AS first_segment
    FROM beside AS b
    WHERE
        b.bytes - CASE WHEN %(only_whole)s THEN 1 ELSE coalesce(b.body_bytes, 0) END < %(max_bytes)s::bigint
        AND NOT b.is_behind AND b.receive <= cardinality(%(wanted_end)s::bigint [])
),

taken AS MATERIALIZED (
    SELECT
        c.*, c.is_marked AND c.log_segment = c.first_segment AS is_bundled,
        (%(nonce)s::bigint [])[c.receive] | CASE WHEN c.is_marked THEN 2305843009213693952 ELSE 0 END AS nonce,
        now() + make_interval(secs => (%(invisible_seconds)s::double precision [])[c.receive]) AS expires_at
    FROM chosen AS c
),

run AS MATERIALIZED (
    SELECT t.tid, count(*) AS messages FROM taken AS t
    GROUP BY t.tid
),

bundled AS (
    INSERT INTO bundle (
        group_id, topic_id, queue_id, first_offset, nonce, places, unsettled, expires_at, received_at, log_segment,
        origin_topic_id, log_offsets, tags_codes
    )
    SELECT
        %(group_id)s, t.queue_topic_id, t.queue_id, t.queue_offset & ~63::bigint, t.nonce,
        bit_or(1::bigint << (t.queue_offset & 63)::integer), bit_or(1::bigint << (t.queue_offset & 63)::integer),
        t.expires_at, statement_timestamp(), t.log_segment, %(topic_id)s, array_agg(t.log_offset ORDER BY t.queue_offset),
        CASE WHEN bool_or(t.tags_code <> 0) THEN array_agg(t.tags_code ORDER BY t.queue_offset) END
    FROM taken AS t
    WHERE t.body_bytes IS NOT NULL AND t.is_bundled
    GROUP BY
        t.queue_topic_id, t.queue_id, t.queue_offset & ~63::bigint, t.nonce, t.expires_at, t.log_segment
),

hidden AS (
    INSERT INTO receipt (
        group_id, topic_id, queue_id, queue_offset, nonce, expires_at, received_at, log_segment, log_offset, tags_code,
        reconsume_times, origin_topic_id, state, limit_value
    )
    SELECT
        %(group_id)s, t.queue_topic_id, t.queue_id, t.queue_offset, t.nonce, t.expires_at, statement_timestamp(),
        t.log_segment, t.log_offset, t.tags_code, t.reconsume_times, %(topic_id)s, 'flight',
        CASE WHEN t.is_counted THEN t.value END
    FROM taken AS t
    WHERE t.body_bytes IS NOT NULL AND NOT t.is_bundled
),

paced AS (
    INSERT INTO pace (group_id, topic_id, value, due_at)
    SELECT
        %(group_id)s, %(topic_id)s, t.value,
        statement_timestamp() + make_interval(secs => count(*) * max(t.token_seconds))
    FROM taken AS t
    WHERE t.body_bytes IS NOT NULL AND t.token_seconds > 0
    GROUP BY t.value
    ON CONFLICT (group_id, topic_id, value) DO UPDATE
    SET due_at = excluded.due_at + greatest(pace.due_at - statement_timestamp(), interval '0')
),

shortened AS (
    UPDATE waiting AS w
    SET taken = w.taken + r.messages
    FROM run AS r
    WHERE w.ctid = r.tid AND w.taken + r.messages < cardinality(w.offsets)
),

emptied AS (
    DELETE FROM waiting AS w
    USING run AS r
    WHERE w.ctid = r.tid AND w.taken + r.messages = cardinality(w.offsets)
)

SELECT
    count(*) AS taken,
    count(*) < (SELECT count(*) FROM line) AS cut,
    (array_agg(t.fair_key ORDER BY t.place DESC))[1] AS last_key,
    string_agg(
        int4send(t.receive) || int4send(t.queue::integer) || int8send(t.queue_offset) || int4send(t.log_segment)
        || int8send(t.log_offset) || int4send(t.reconsume_times::integer) || int4send(t.body_bytes)
        || boolsend(t.is_marked),
        ''::bytea ORDER BY t.place
    ) FILTER (WHERE t.body_bytes IS NOT NULL) AS handed
FROM taken AS t
