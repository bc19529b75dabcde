-- Give deliveries of bundles a receipt each, with the nonce and the times of the bundle. `places` of a parameter has a bit for each of
-- these deliveries. The caller holds the bundles' locks, so no delivery is settled meanwhile.
WITH found AS MATERIALIZED (
    SELECT f.*, a.places AS wanted
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(first_offset)b::bigint [],
        %(nonce)b::bigint [], %(places)b::bigint []
    ) AS a (group_id, topic_id, queue_id, first_offset, nonce, places)
    CROSS JOIN LATERAL (
        SELECT b.ctid AS tid, b.*
        FROM bundle AS b
        WHERE
            b.group_id = a.group_id AND b.topic_id = a.topic_id AND b.queue_id = a.queue_id
            AND b.first_offset = a.first_offset AND b.nonce = a.nonce
        LIMIT 1
    ) AS f
),

emptied AS (
    DELETE FROM bundle AS b
    USING found
    WHERE b.ctid = found.tid AND (found.unsettled & ~found.wanted = 0) IS TRUE
),

shortened AS (
    UPDATE bundle AS b
    SET unsettled = b.unsettled & ~found.wanted
    FROM found
    WHERE b.ctid = found.tid AND (found.unsettled & ~found.wanted <> 0 AND found.unsettled & found.wanted <> 0) IS TRUE
)

INSERT INTO receipt (
    group_id, topic_id, queue_id, queue_offset, nonce, expires_at, received_at, log_segment, log_offset, tags_code,
    reconsume_times, origin_topic_id, state
)
SELECT
    f.group_id, f.topic_id, f.queue_id, f.first_offset + p.place, f.nonce, f.expires_at, f.received_at, f.log_segment,
    f.log_offsets[p.number], coalesce(f.tags_codes[p.number], 0), 0, f.origin_topic_id, 'flight'
FROM found AS f
CROSS JOIN LATERAL (
    SELECT s.place, row_number() OVER (ORDER BY s.place) AS number
    FROM generate_series(0, 63) AS s (place)
    WHERE (f.places >> s.place) & 1 = 1
) AS p
WHERE ((f.unsettled & f.wanted) >> p.place) & 1 = 1
