-- Hand out entries that fair groups have read ahead of a topic, in the order of turns: the first entry of each key from
-- the key after the last served key round to it, then the second of each key; and hide them until they are acked or
-- their invisible time is over by the database's clock. A reading is one group's reading of one topic; `readings` are the
-- readings whose locks the caller holds, or else the register `mq.readings`. The index leads from key to key, however
-- many entries each key has; of a key at most four times its share of the wanted entries are read, usually from the
-- first rows of the key. Entries of a reading form one line, and its receives a second line beside it: each occupies as
-- many places as it asks for messages, and is handed the entries at its places. A retried message is the only message
-- of its receive. At most max_bytes of bodies of a reading are handed out, but always its first entry, unless
-- `only_whole`. An entry whose message was dropped with its segment is removed, and not handed out. The last served key
-- is `after`; but if the hand-out `follows`, whose answer the caller does not have yet, was the last one on this
-- connection, a register `mq.turn_…` has its key. The register `mq.handed` is as in hand_out. A group with limits
-- passes over the keys whose value is at its limit, and of each other key at most `room` entries are handed out.
-- `looks` says that the next key has a value of its own; by group, all keys share the room of the first. The walk ends
-- when the keys have room for all wanted entries, but looks at as many keys as entries are wanted; if that is not
-- enough, at max_looked keys. The locks keep the count exact: no other transaction hands out messages of these values,
-- a delivery that is settled meanwhile still counts, and no delivery is missed. The receipt of a delivery that counts
-- has the value by which the limits count it; such a delivery lies in no bundle. Deliveries use the rate of their value
-- from the time of this statement on, which is later than the lock. After `again_seconds` a value without room may have
-- room; null if each value has room.
WITH RECURSIVE reading AS MATERIALIZED (
    SELECT
        k.*, width_bucket(k.wanted_before, %(wanted_end)s::bigint []) AS receives_before,
        width_bucket(k.wanted_before + k.wanted - 1, %(wanted_end)s::bigint []) + 1 AS last_receive,
        CASE
            WHEN split_part(current_setting(k.register, true), ' ', 1) = k.follows::text
                THEN regexp_replace(current_setting(k.register, true), '^\d+ ', '')
            ELSE k.after
        END COLLATE "C" AS last_key,
        g.limits - 'values' AS usual, g.limits -> 'values' AS own,
        coalesce(g.limits ->> 'by' = 'group', false) AS is_one, starts_with(g.limits ->> 'by', 'property:') AS is_escaped
    FROM (
        SELECT r.*, 'mq.turn_' || ((r.group_id # r.topic_id) & 63) AS register
        FROM unnest(
            %(group_id)s::integer [], %(topic_id)s::integer [], %(wanted_before)s::bigint [], %(wanted)s::bigint [],
            %(after)s::text [], %(follows)s::bigint []
        ) WITH ORDINALITY AS r (group_id, topic_id, wanted_before, wanted, after, follows, reading)
    ) AS k
    LEFT JOIN consumer_group AS g ON k.group_id = g.id
    WHERE
        k.reading = any(
            coalesce(%(readings)s::bigint [], string_to_array(current_setting('mq.readings', true), ',')::bigint [])
        )
),

walk AS (
    SELECT
        r.reading, r.group_id, r.topic_id, r.wanted, r.last_key, 0 AS number, r.last_key AS fair_key, false AS is_round,
        r.usual IS NOT NULL AS looks, r.wanted AS room, 0::bigint AS rooms, NULL::text COLLATE "C" AS limit_value,
        NULL::double precision AS token_seconds, NULL::double precision AS wait_seconds
    FROM reading AS r
    UNION ALL
    SELECT
        k.reading, k.group_id, k.topic_id, CASE WHEN l.is_one THEN l.room ELSE k.wanted END, k.last_key, k.number + 1,
        next.fair_key, next.is_round, coalesce(NOT l.is_one, false), coalesce(l.room, k.room),
        k.rooms + coalesce(l.room, k.room), CASE WHEN k.looks THEN l.limit_value ELSE k.limit_value END,
        CASE WHEN k.looks THEN l.token_seconds ELSE k.token_seconds END, least(l.wait_seconds, k.wait_seconds)
    FROM walk AS k
    CROSS JOIN LATERAL (
        (
            SELECT w.fair_key, k.is_round
            FROM waiting AS w
            WHERE w.group_id = k.group_id AND w.topic_id = k.topic_id AND w.fair_key > k.fair_key
            ORDER BY w.fair_key
            LIMIT 1
        )
        UNION ALL
        (
            SELECT w.fair_key, true AS is_round
            FROM waiting AS w
            WHERE w.group_id = k.group_id AND w.topic_id = k.topic_id AND NOT k.is_round
            ORDER BY w.fair_key
            LIMIT 1
        )
        LIMIT 1
    ) AS next
    LEFT JOIN LATERAL (
        SELECT
            s.is_one, CASE WHEN s.in_flight IS NOT NULL THEN s.value END AS limit_value,
            1 / s.per_second AS token_seconds, s.room,
            CASE
                WHEN s.room = 0
                    THEN
                        greatest(
                            CASE WHEN s.counted >= s.in_flight THEN %(slot_seconds)s::double precision END,
                            s.due_seconds - (s.size - 1) / s.per_second
                        )
            END AS wait_seconds
        FROM (
            SELECT
                c.*,
                greatest(
                    least(c.in_flight - c.counted, floor(c.size - c.due_seconds * c.per_second), k.wanted), 0
                )::bigint AS room
            FROM (
                SELECT
                    v.*, o.in_flight, o.per_second, coalesce(o.burst, ceil(o.per_second)) AS size,
                    CASE
                        WHEN o.in_flight IS NOT NULL
                            THEN
                                (
                                    SELECT count(*)
                                    FROM (
                                        SELECT
                                        FROM receipt AS r
                                        WHERE
                                            r.group_id = k.group_id AND r.origin_topic_id = k.topic_id
                                            AND r.limit_value = v.value AND r.state = 'flight'
                                        LIMIT o.in_flight
                                    ) AS f
                                )
                    END AS counted,
                    CASE
                        WHEN o.per_second IS NOT NULL
                            THEN
                                coalesce(
                                    (
                                        SELECT
                                            greatest(
                                                extract(EPOCH FROM p.due_at - statement_timestamp())::double precision,
                                                0
                                            )
                                        FROM pace AS p
                                        WHERE
                                            p.group_id = k.group_id AND p.topic_id = k.topic_id AND p.value = v.value
                                    ),
                                    0
                                )
                    END AS due_seconds
                FROM (
                    SELECT
                        r.is_one, r.usual, CASE WHEN r.is_one THEN '' ELSE next.fair_key END AS value,
                        CASE
                            WHEN r.is_escaped AND strpos(next.fair_key, E'\\') > 0
                                THEN
                                    (
                                        SELECT e.value FROM jsonb_each(r.own) AS e
                                        WHERE to_json(e.key)::text = concat('"', next.fair_key, '"')
                                    )
                            ELSE r.own -> next.fair_key
                        END AS own
                    FROM reading AS r
                    WHERE r.reading = k.reading AND k.looks
                ) AS v
                CROSS JOIN LATERAL jsonb_to_record(coalesce(v.own, v.usual))
                    AS o (in_flight bigint, per_second double precision, burst bigint)
                OFFSET 0
            ) AS c
            OFFSET 0
        ) AS s
    ) AS l ON true
    WHERE
        (k.number < k.wanted OR (k.rooms < k.wanted AND k.number < %(max_looked)s::integer))
        AND NOT (next.is_round AND next.fair_key > k.last_key)
),

-- Where the walk has ended. If no key has room, the next walk goes on from there.
looked AS MATERIALIZED (
    SELECT DISTINCT ON (k.reading)
        k.reading, CASE WHEN k.rooms > 0 THEN k.last_key ELSE k.fair_key END AS last_key,
        least(
            k.wait_seconds,
            CASE
                WHEN k.number >= %(max_looked)s::integer AND k.rooms < k.wanted
                    THEN %(look_on_seconds)s::double precision
            END
        ) AS again_seconds
    FROM walk AS k
    ORDER BY k.reading ASC, k.number DESC
),

turn AS MATERIALIZED (
    SELECT
        k.reading, k.group_id, k.topic_id, k.wanted, k.fair_key, k.number, k.limit_value, k.token_seconds,
        least(k.room, 4 * (k.wanted / count(*) OVER (PARTITION BY k.reading) + 1)) AS share
    FROM walk AS k
    WHERE k.number > 0 AND k.room > 0
),

lined AS (
    SELECT
        t.reading, t.wanted, t.limit_value, t.token_seconds, r.tid, r.fair_key, r.queue_topic_id, r.queue_id,
        e.queue_offset,
        row_number() OVER (PARTITION BY t.reading ORDER BY r.waits_before + e.place, t.number) AS place
    FROM turn AS t
    CROSS JOIN LATERAL (
        SELECT
            w.*, sum(w.waits) OVER (
                ORDER BY w.log_segment, w.log_offset, w.queue_topic_id, w.queue_id, w.first_offset
            ) - w.waits AS waits_before
        FROM (
            SELECT s.*, s.ctid AS tid, cardinality(s.offsets) - s.taken AS waits
            FROM waiting AS s
            WHERE s.group_id = t.group_id AND s.topic_id = t.topic_id AND s.fair_key = t.fair_key
            ORDER BY s.log_segment, s.log_offset, s.queue_topic_id, s.queue_id, s.first_offset
            LIMIT
                CASE
                    WHEN (
                        SELECT sum(cardinality(f.offsets) - f.taken) >= t.share
                        FROM (
                            SELECT n.offsets, n.taken
                            FROM waiting AS n
                            WHERE n.group_id = t.group_id AND n.topic_id = t.topic_id AND n.fair_key = t.fair_key
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
),

line AS MATERIALIZED (
    SELECT l.* FROM lined AS l
    WHERE l.place <= l.wanted
),

found AS MATERIALIZED (
    SELECT
        l.reading, l.limit_value, l.token_seconds, l.tid, l.fair_key, l.queue_topic_id, l.queue_id, l.queue_offset,
        q.queue, e.tags_code,
        e.reconsume_times, e.log_segment, e.log_offset, m.body_bytes, row_number() OVER turns AS place,
        coalesce(sum(m.body_bytes) OVER (turns ROWS UNBOUNDED PRECEDING), 0) AS bytes
    FROM line AS l
    INNER JOIN unnest(
        %(queue_reading)s::integer [], %(queue_topic_id)s::integer [], %(queue_id)s::integer []
    ) WITH ORDINALITY AS q (reading, queue_topic_id, queue_id, queue)
        ON l.reading = q.reading AND l.queue_topic_id = q.queue_topic_id AND l.queue_id = q.queue_id
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
    WINDOW turns AS (PARTITION BY l.reading ORDER BY l.place)
),

-- Each retry has one receive; other entries share the receives. The entries that are handed out are all retries or all
-- new, like the first entry. Entries of a key and queue are taken in order, up to the first entry of the other kind.
beside AS MATERIALIZED (
    SELECT
        f.*, r.group_id, r.topic_id, r.last_receive,
        CASE
            WHEN f.reconsume_times > 0 THEN r.receives_before + f.place
            ELSE width_bucket(r.wanted_before + f.place - 1, %(wanted_end)s::bigint []) + 1
        END::integer AS receive,
        bool_or(coalesce(f.reconsume_times, 0) > 0) OVER line
        <> bool_and(coalesce(f.reconsume_times, 0) > 0) OVER line AS is_behind
    FROM found AS f
    INNER JOIN reading AS r ON f.reading = r.reading
    WINDOW line AS (PARTITION BY f.reading ORDER BY f.place)
),

-- `is_marked`: the delivery may lie in a bundle, as in hand_out; this needs a delivery that no limit counts.
chosen AS MATERIALIZED (
    SELECT
        b.*,
        b.reconsume_times = 0 AND b.limit_value IS NULL
        AND count(*) FILTER (WHERE b.limit_value IS NULL) OVER (PARTITION BY b.receive) > 1 AND (
            SELECT coalesce(bool_and(h.bundles_at IS NOT DISTINCT FROM h.beaten_at), false)
            FROM heartbeat AS h
            WHERE h.beaten_at > now() - interval '10 minutes'
        ) AS is_marked,
        min(b.log_segment) OVER () AS first_segment
    FROM beside AS b
    WHERE
        b.bytes - CASE WHEN %(only_whole)s THEN 1 ELSE coalesce(b.body_bytes, 0) END < %(max_bytes)s::bigint
        AND NOT b.is_behind AND b.receive <= b.last_receive
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
        t.group_id, t.queue_topic_id, t.queue_id, t.queue_offset & ~63::bigint, t.nonce,
        bit_or(1::bigint << (t.queue_offset & 63)::integer), bit_or(1::bigint << (t.queue_offset & 63)::integer),
        t.expires_at, now(), t.log_segment, t.topic_id, array_agg(t.log_offset ORDER BY t.queue_offset),
        CASE WHEN bool_or(t.tags_code <> 0) THEN array_agg(t.tags_code ORDER BY t.queue_offset) END
    FROM taken AS t
    WHERE t.body_bytes IS NOT NULL AND t.is_bundled
    GROUP BY
        t.group_id, t.topic_id, t.queue_topic_id, t.queue_id, t.queue_offset & ~63::bigint, t.nonce, t.expires_at,
        t.log_segment
),

hidden AS (
    INSERT INTO receipt (
        group_id, topic_id, queue_id, queue_offset, nonce, expires_at, received_at, log_segment, log_offset, tags_code,
        reconsume_times, origin_topic_id, state, limit_value
    )
    SELECT
        t.group_id, t.queue_topic_id, t.queue_id, t.queue_offset, t.nonce, t.expires_at, now(), t.log_segment,
        t.log_offset, t.tags_code, t.reconsume_times, t.topic_id, 'flight',
        t.limit_value
    FROM taken AS t
    WHERE t.body_bytes IS NOT NULL AND NOT t.is_bundled
),

paced AS (
    INSERT INTO pace (group_id, topic_id, value, due_at)
    SELECT u.group_id, u.topic_id, u.value, statement_timestamp() + make_interval(secs => sum(u.token_seconds))
    FROM (
        SELECT t.group_id, t.topic_id, CASE WHEN r.is_one THEN '' ELSE t.fair_key END AS value, t.token_seconds
        FROM taken AS t
        INNER JOIN reading AS r ON t.reading = r.reading
        WHERE t.body_bytes IS NOT NULL AND t.token_seconds > 0
    ) AS u
    GROUP BY u.group_id, u.topic_id, u.value
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
),

served AS (
    SELECT
        t.reading, count(*) AS taken, (array_agg(t.fair_key ORDER BY t.place DESC))[1] AS last_key,
        string_agg(
            int4send(t.receive) || int4send(t.queue::integer) || int8send(t.queue_offset) || int4send(t.log_segment)
            || int8send(t.log_offset) || int4send(t.reconsume_times::integer) || int4send(t.body_bytes)
            || boolsend(t.is_marked),
            ''::bytea ORDER BY t.place
        ) FILTER (WHERE t.body_bytes IS NOT NULL) AS handed
    FROM taken AS t
    GROUP BY t.reading
)

SELECT
    r.reading, coalesce(s.taken, 0) AS taken,
    coalesce(s.taken, 0) < (SELECT count(*) FROM line AS l WHERE l.reading = r.reading) AS cut,
    coalesce(s.last_key, k.last_key) AS last_key, k.again_seconds, s.handed,
    set_config(
        r.register, (%(nonce)s::bigint [])[r.receives_before + 1] || ' ' || coalesce(s.last_key, k.last_key), false
    ) IS NOT NULL AS kept,
    (
        SELECT
            set_config(
                'mq.handed',
                coalesce(
                    string_agg(h.log_segment || ' ' || h.log_offset, ',')
                    FILTER (WHERE h.bytes <= %(max_read_bytes)s::bigint),
                    ''
                ),
                false
            ) IS NOT NULL
        FROM taken AS h
    ) AS named
FROM reading AS r
INNER JOIN looked AS k ON r.reading = k.reading
LEFT JOIN served AS s ON r.reading = s.reading
