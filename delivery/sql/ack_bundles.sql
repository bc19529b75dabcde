-- Ack deliveries of bundles, and return them by the bundles' numbers in the arrays. `places` of a parameter has a bit
-- for each acked delivery. A bundle whose last deliveries are acked is deleted. A delivery that has left its bundle has
-- a receipt, which is then deleted as in ack_receipts. Nothing is found for a delivery that was acked before, or whose
-- time is over. A bundle that another transaction has changed since the snapshot is passed over. Bundles come sorted,
-- so two acks lock rows in the same order; each bundle is looked up by a separate index probe, so the planner's
-- estimate of the number of rows does not matter.
WITH found AS MATERIALIZED (
    SELECT a.*, f.tid, f.unsettled
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(first_offset)b::bigint [],
        %(nonce)b::bigint [], %(places)b::bigint []
    ) WITH ORDINALITY AS a (group_id, topic_id, queue_id, first_offset, nonce, places, number)
    LEFT JOIN LATERAL (
        SELECT b.ctid AS tid, b.unsettled
        FROM bundle AS b
        WHERE
            b.group_id = a.group_id AND b.topic_id = a.topic_id AND b.queue_id = a.queue_id
            AND b.first_offset = a.first_offset AND b.nonce = a.nonce
        LIMIT 1
    ) AS f ON true
),

emptied AS (
    DELETE FROM bundle AS b
    USING found
    WHERE
        b.ctid = found.tid
        AND (b.unsettled = found.unsettled AND b.unsettled & ~found.places = 0 AND b.expires_at > now()) IS TRUE
    RETURNING found.number, found.unsettled AS places
),

shortened AS (
    UPDATE bundle AS b
    SET unsettled = b.unsettled & ~found.places
    FROM found
    WHERE
        b.ctid = found.tid
        AND (
            b.unsettled = found.unsettled AND b.unsettled & ~found.places <> 0 AND b.unsettled & found.places <> 0
            AND b.expires_at > now()
        ) IS TRUE
    RETURNING found.number, found.unsettled & found.places AS places
),

settled AS MATERIALIZED (
    SELECT e.number, e.places FROM emptied AS e
    UNION ALL
    SELECT s.number, s.places FROM shortened AS s
),

apart AS MATERIALIZED (
    SELECT l.number, l.nonce, p.place, f.tid
    FROM (
        SELECT w.*, w.places & ~coalesce(s.places, 0) AS missing
        FROM found AS w
        LEFT JOIN settled AS s ON w.number = s.number
    ) AS l
    CROSS JOIN LATERAL generate_series(0, 63) AS p (place)
    CROSS JOIN LATERAL (
        SELECT r.ctid AS tid
        FROM receipt AS r
        WHERE
            r.group_id = l.group_id AND r.topic_id = l.topic_id AND r.queue_id = l.queue_id
            AND r.queue_offset = l.first_offset + p.place
        LIMIT 1
    ) AS f
    WHERE l.missing <> 0 AND (l.missing >> p.place) & 1 = 1
),

gone AS (
    DELETE FROM receipt AS r
    USING apart
    WHERE r.ctid = apart.tid AND (r.nonce = apart.nonce AND r.state = 'flight' AND r.expires_at > now()) IS TRUE
    RETURNING apart.number, 1::bigint << apart.place AS places
)

SELECT s.number, s.places FROM settled AS s
UNION ALL
SELECT g.number, g.places FROM gone AS g
