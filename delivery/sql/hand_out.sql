-- Hand out entries that groups were not handed yet, and hide them until they are acked or their invisible time is over
-- by the database's clock. Safe because this snapshot is newer than the locks of `lock_readings`: no other transaction
-- hands out entries of these readings. A reading is left out when it is not locked, when its group begins to read at
-- the latest entry, or when the segment is no longer the open one. A reading is one group's reading of one topic. Its
-- entries form one line, queue after queue in the order given. Its receives form a second line beside it: each occupies
-- as many places as it asks for messages, and is handed the entries at its places. Entries of the retry queue come
-- first, one per receive: a retried message is handed out alone, in case it kills its consumer. The receives after
-- these share the line of the other queues. At most max_bytes of bodies of a reading are handed out at once, but always
-- its first entry. The register `mq.moves` passes the moves to `record_moves`. The register `mq.handed` outlives the
-- transaction and names messages of at most max_read_bytes of each reading: their bodies are read after the commit, so
-- that a process that is slow to read its socket does not keep the locks. Each message is looked up by a separate index
-- probe, as in read_entries.
WITH reading AS MATERIALIZED (
    SELECT r.*
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(latest)b::integer [], %(wanted_before)b::bigint [],
        %(wanted)b::bigint []
    ) WITH ORDINALITY AS r (group_id, topic_id, latest, wanted_before, wanted, reading)
    WHERE
        r.reading = any(string_to_array(current_setting('mq.readings', true), ',')::bigint [])
        AND EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)s)
),

reached AS MATERIALIZED (
    SELECT
        r.*, q.number, q.queue_topic_id, q.queue_id, coalesce(newest.move, 0) + 1 AS move,
        greatest(newest.next_offset, f.min_offset, 0) AS next_offset,
        coalesce(
            (
                SELECT c.queue_offset + 1
                FROM consume_queue AS c
                WHERE c.topic_id = q.queue_topic_id AND c.queue_id = q.queue_id
                ORDER BY c.queue_offset DESC
                LIMIT 1
            ),
            0
        ) AS max_offset,
        CASE
            WHEN newest.move IS NULL AND r.latest = 1
                THEN
                    NOT EXISTS (
                        SELECT FROM progress AS o WHERE o.reader_id = r.group_id AND o.topic_id = q.queue_topic_id
                    )
            ELSE false
        END AS begins
    FROM unnest(
        %(queue_reading)b::integer [], %(queue_topic_id)b::integer [], %(queue_id)b::integer []
    ) WITH ORDINALITY AS q (reading, queue_topic_id, queue_id, number)
    INNER JOIN reading AS r ON q.reading = r.reading
    LEFT JOIN queue_floor AS f ON q.queue_topic_id = f.topic_id AND q.queue_id = f.queue_id
    LEFT JOIN LATERAL (
        SELECT p.next_offset, p.move
        FROM progress AS p
        WHERE p.reader_id = r.group_id AND p.topic_id = q.queue_topic_id AND p.queue_id = q.queue_id
        ORDER BY p.move DESC
        LIMIT 1
    ) AS newest ON true
),

lined AS MATERIALIZED (
    SELECT
        q.*, bool_or(q.begins) OVER (PARTITION BY q.reading) AS left_out,
        sum(greatest(q.max_offset - q.next_offset, 0)) OVER (PARTITION BY q.reading ORDER BY q.number)::bigint
        - greatest(q.max_offset - q.next_offset, 0) AS entries_before,
        max(CASE WHEN q.queue_topic_id <> q.topic_id THEN greatest(q.max_offset - q.next_offset, 0) ELSE 0 END)
            OVER (PARTITION BY q.reading) AS retries
    FROM reached AS q
),

-- The place, counted from 0 over all receives, at which a queue's entries begin. If there are retries, the other
-- queues' entries begin after the receives that get one retry each.
placed AS (
    SELECT
        q.*, q.queue_topic_id <> q.topic_id AS is_retry,
        CASE
            WHEN q.retries = 0 THEN q.wanted_before + q.entries_before
            ELSE
                (%(wanted_end)b::bigint [])[
                    least(
                        width_bucket(q.wanted_before, %(wanted_end)b::bigint []) + q.retries,
                        width_bucket(q.wanted_before + q.wanted, %(wanted_end)b::bigint [])
                    )::integer
                ] + q.entries_before - q.retries
        END AS start
    FROM lined AS q
),

found AS MATERIALIZED (
    SELECT
        q.reading, q.group_id, q.topic_id, q.queue_topic_id, q.queue_id, q.number, q.move, e.queue_offset, e.tags_code,
        e.reconsume_times, e.log_segment, e.log_offset, m.body_bytes,
        CASE
            WHEN q.is_retry
                THEN
                    width_bucket(q.wanted_before, %(wanted_end)b::bigint []) + 1
                    + (e.queue_offset - q.next_offset)::integer
            ELSE width_bucket(q.start + e.queue_offset - q.next_offset, %(wanted_end)b::bigint []) + 1
        END AS receive, q.retries > 0 AS comes_apart,
        sum(m.body_bytes) OVER (PARTITION BY q.reading ORDER BY q.number, e.queue_offset ROWS UNBOUNDED PRECEDING)
            AS bytes
    FROM (
        SELECT
            p.*,
            CASE
                WHEN p.is_retry
                    THEN
                        width_bucket(p.wanted_before + p.wanted, %(wanted_end)b::bigint [])
                        - width_bucket(p.wanted_before, %(wanted_end)b::bigint [])
                ELSE p.wanted_before + p.wanted - p.start
            END AS room
        FROM placed AS p
    ) AS q
    CROSS JOIN LATERAL (
        SELECT c.queue_offset, c.tags_code, c.reconsume_times, c.log_segment, c.log_offset
        FROM consume_queue AS c
        WHERE
            c.topic_id = q.queue_topic_id AND c.queue_id = q.queue_id AND c.queue_offset >= q.next_offset
            AND c.queue_offset < q.next_offset + q.room
        ORDER BY c.queue_offset
        LIMIT greatest(q.room, 0)
    ) AS e
    CROSS JOIN LATERAL (
        SELECT octet_length(l.body) AS body_bytes FROM commit_log AS l
        WHERE l.segment_id = e.log_segment AND l.log_offset = e.log_offset
        LIMIT 1
    ) AS m
    WHERE NOT q.left_out AND q.room > 0 AND q.next_offset < q.max_offset
),

-- A first delivery lies in a bundle if its receive is handed more than one message (a receipt costs less than a bundle
-- of one) and bundles may be made (decision 0063). A first heartbeat of an earlier version locks the table of bundles
-- until it is committed; this statement locks the table before it takes its snapshot, so one of the two transactions
-- sees the other. A bundle is of one segment of the log. 2305843009213693952 is the bit of the nonce that marks the
-- delivery.
chosen AS MATERIALIZED (
    SELECT
        f.*,
        f.reconsume_times = 0 AND count(*) OVER (PARTITION BY f.receive) > 1 AND (
            SELECT coalesce(bool_and(h.bundles_at IS NOT DISTINCT FROM h.beaten_at), false)
            FROM heartbeat AS h
            WHERE h.beaten_at > now() - interval '10 minutes'
        ) AS is_marked,
        min(f.log_segment) OVER () AS first_segment
    FROM found AS f
    WHERE f.bytes - f.body_bytes < %(max_bytes)s::bigint
),

handed AS MATERIALIZED (
    SELECT
        c.*, c.is_marked AND c.log_segment = c.first_segment AS is_bundled,
        (%(nonce)b::bigint [])[c.receive] | CASE WHEN c.is_marked THEN 2305843009213693952 ELSE 0 END AS nonce,
        now() + make_interval(secs => (%(invisible_seconds)b::double precision [])[c.receive]) AS expires_at
    FROM chosen AS c
),

bundled AS (
    INSERT INTO bundle (
        group_id, topic_id, queue_id, first_offset, nonce, places, unsettled, expires_at, received_at, log_segment,
        origin_topic_id, log_offsets, tags_codes
    )
    SELECT
        h.group_id, h.queue_topic_id, h.queue_id, h.queue_offset & ~63::bigint, h.nonce,
        bit_or(1::bigint << (h.queue_offset & 63)::integer), bit_or(1::bigint << (h.queue_offset & 63)::integer),
        h.expires_at, now(), h.log_segment, h.topic_id, array_agg(h.log_offset ORDER BY h.queue_offset),
        CASE WHEN bool_or(h.tags_code <> 0) THEN array_agg(h.tags_code ORDER BY h.queue_offset) END
    FROM handed AS h
    WHERE h.is_bundled
    GROUP BY
        h.group_id, h.queue_topic_id, h.queue_id, h.queue_offset & ~63::bigint, h.nonce, h.expires_at, h.log_segment,
        h.topic_id
),

hidden AS (
    INSERT INTO receipt (
        group_id, topic_id, queue_id, queue_offset, nonce, expires_at, received_at, log_segment, log_offset, tags_code,
        reconsume_times, origin_topic_id, state
    )
    SELECT
        h.group_id, h.queue_topic_id, h.queue_id, h.queue_offset, h.nonce, h.expires_at, now(), h.log_segment,
        h.log_offset, h.tags_code, h.reconsume_times, h.topic_id, 'flight'
    FROM handed AS h
    WHERE NOT h.is_bundled
)

SELECT
    (
        SELECT string_agg(int4send(t.reading::integer), ''::bytea)
        FROM (SELECT DISTINCT q.reading FROM lined AS q WHERE NOT q.left_out) AS t
    ) AS readings,
    (
        SELECT string_agg(int4send(t.reading::integer), ''::bytea)
        FROM (
            SELECT DISTINCT f.reading
            FROM found AS f
            WHERE f.comes_apart OR f.bytes - f.body_bytes >= %(max_bytes)s::bigint
        ) AS t
    ) AS cut,
    string_agg(
        int4send(h.receive) || int4send(h.number::integer) || int8send(h.queue_offset) || int4send(h.log_segment)
        || int8send(h.log_offset) || int4send(h.reconsume_times::integer) || int4send(h.body_bytes)
        || boolsend(h.is_marked),
        ''::bytea
    ) AS handed,
    set_config(
        'mq.moves',
        coalesce(
            (
                SELECT string_agg(concat_ws(' ', m.group_id, m.queue_topic_id, m.queue_id, m.move, m.next_offset), ',')
                FROM (
                    SELECT h.group_id, h.queue_topic_id, h.queue_id, h.move, max(h.queue_offset) + 1 AS next_offset
                    FROM handed AS h
                    GROUP BY h.group_id, h.queue_topic_id, h.queue_id, h.move
                ) AS m
            ),
            ''
        ),
        true
    ) IS NOT NULL AS moved,
    set_config(
        'mq.handed',
        coalesce(
            string_agg(h.log_segment || ' ' || h.log_offset, ',') FILTER (WHERE h.bytes <= %(max_read_bytes)s::bigint),
            ''
        ),
        false
    ) IS NOT NULL AS named
FROM handed AS h
