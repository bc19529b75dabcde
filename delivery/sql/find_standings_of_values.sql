-- Find the deliveries in flight of values of an ordered group with limits, at most max_in_flight of each value, and the
-- time in which the bucket of the value is full. The caller holds the lock of the group's progress, so no other
-- transaction hands out messages of these values: a delivery that is settled meanwhile still counts, and no delivery is
-- missed.
SELECT
    v.value,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM receipt AS r
            WHERE
                r.group_id = %(group_id)s AND r.origin_topic_id = %(topic_id)s AND r.limit_value = v.value
                AND r.state = 'flight'
            LIMIT %(max_in_flight)s
        ) AS f
    ) AS in_flight,
    coalesce(
        (
            SELECT greatest(extract(EPOCH FROM p.due_at - statement_timestamp())::double precision, 0)
            FROM pace AS p
            WHERE p.group_id = %(group_id)s AND p.topic_id = %(topic_id)s AND p.value = v.value
        ),
        0
    ) AS due_seconds
FROM unnest(%(value)s::text []) AS v (value)
