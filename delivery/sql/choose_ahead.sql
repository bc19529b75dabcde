-- Choose the entries that fair groups read ahead: from each queue that has new entries an equal part of `room_ahead`. A
-- reading is left out when it is not locked, when its group begins to read at the latest entry, or when the segment is
-- no longer the open one. The register `mq.readings` then names the readings that were not left out. The register
-- `mq.ahead` passes the ranges to `read_ahead`, as `reading topic queue from to,…`, and `mq.moves` the moves to
-- `record_moves`.
WITH reading AS MATERIALIZED (
    SELECT r.*
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(latest)b::integer [], %(room_ahead)b::integer []
    ) WITH ORDINALITY AS r (group_id, topic_id, latest, room_ahead, reading)
    WHERE
        r.reading = any(string_to_array(current_setting('mq.readings', true), ',')::bigint [])
        AND EXISTS (SELECT FROM segment AS s WHERE s.state = 'open' AND s.id = %(segment_id)b)
),

reached AS MATERIALIZED (
    SELECT
        r.*, q.queue_topic_id, q.queue_id, coalesce(newest.move, 0) + 1 AS move,
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
    ) AS q (reading, queue_topic_id, queue_id)
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

shared AS MATERIALIZED (
    SELECT
        q.*, bool_or(q.begins) OVER (PARTITION BY q.reading) AS left_out,
        count(*) FILTER (WHERE q.next_offset < q.max_offset) OVER (PARTITION BY q.reading) AS queues
    FROM reached AS q
),

chosen AS MATERIALIZED (
    SELECT s.*, least(s.next_offset + greatest(s.room_ahead / s.queues, 1), s.max_offset) AS end_offset
    FROM shared AS s
    WHERE NOT s.left_out AND s.room_ahead > 0 AND s.next_offset < s.max_offset
)

SELECT
    (
        SELECT string_agg(int4send(t.reading::integer) || int4send(t.entries::integer), ''::bytea)
        FROM (
            SELECT c.reading, sum(c.end_offset - c.next_offset) AS entries FROM chosen AS c
            GROUP BY c.reading
        ) AS t
    ) AS entries,
    set_config(
        'mq.readings',
        coalesce((SELECT string_agg(DISTINCT s.reading::text, ',') FROM shared AS s WHERE NOT s.left_out), ''),
        true
    ) IS NOT NULL AS named,
    set_config(
        'mq.ahead',
        coalesce(
            string_agg(concat_ws(' ', c.reading, c.queue_topic_id, c.queue_id, c.next_offset, c.end_offset), ','), ''
        ),
        true
    ) IS NOT NULL AS chosen,
    set_config(
        'mq.moves',
        coalesce(
            string_agg(concat_ws(' ', c.group_id, c.queue_topic_id, c.queue_id, c.move, c.end_offset), ','), ''
        ),
        true
    ) IS NOT NULL AS moved
FROM chosen AS c
