-- Find the values by which a group's limits count messages, the value with the most waiting messages first: messages
-- that wait by key or are parked, deliveries in flight that count, and the time in which the bucket is full. One pass
-- over the group's waiting rows and over its receipts, for a page of the console.
SELECT t.name AS topic, v.value, v.waiting, v.in_flight, v.due_seconds
FROM (
    SELECT
        s.topic_id, s.value, sum(s.waiting)::bigint AS waiting, sum(s.in_flight)::bigint AS in_flight,
        max(s.due_seconds) AS due_seconds
    FROM (
        SELECT
            w.topic_id, CASE WHEN %(of_group)s::boolean THEN '' ELSE w.fair_key END AS value,
            cardinality(w.offsets) - w.taken AS waiting, 0 AS in_flight, 0::double precision AS due_seconds
        FROM waiting AS w
        WHERE w.group_id = %(group_id)s
        UNION ALL
        SELECT
            p.origin_topic_id, CASE WHEN %(of_group)s::boolean THEN '' ELSE left(p.sharding_key, %(max_key)s::integer) END,
            1, 0, 0
        FROM receipt AS p
        WHERE p.group_id = %(group_id)s AND p.state IN ('held', 'parked') AND p.state = 'parked'
        UNION ALL
        SELECT f.origin_topic_id, f.limit_value, 0, 1, 0
        FROM receipt AS f
        WHERE f.group_id = %(group_id)s AND f.state = 'flight' AND f.limit_value IS NOT NULL
        UNION ALL
        SELECT
            r.topic_id, r.value, 0, 0,
            greatest(extract(EPOCH FROM r.due_at - statement_timestamp())::double precision, 0)
        FROM pace AS r
        WHERE r.group_id = %(group_id)s
    ) AS s
    GROUP BY s.topic_id, s.value
) AS v
INNER JOIN topic AS t ON v.topic_id = t.id
ORDER BY v.waiting DESC, t.name, v.value
LIMIT %(max_values)s
