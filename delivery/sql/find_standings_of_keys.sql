-- Find the keys of a group with limits, in the order of turns: keys with waiting messages from the key after `begin` round
-- to `after`, at most `most`, and then the keys that are given; with the deliveries in flight of each key's value, at most
-- max_in_flight, and the time in which its bucket is full. By group, all keys have one value. The index leads from key to
-- key, however many entries wait behind each. The caller holds the lock of the group's progress, so no other transaction
-- hands out messages of these values: a delivery that is settled meanwhile still counts, and none is missed.
WITH RECURSIVE walk AS (
    SELECT 0 AS number, %(begin)s::text COLLATE "C" AS fair_key, %(is_round)s::boolean AS is_round
    UNION ALL
    SELECT k.number + 1, next.fair_key, next.is_round
    FROM walk AS k
    CROSS JOIN LATERAL (
        (
            SELECT w.fair_key, k.is_round
            FROM waiting AS w
            WHERE w.group_id = %(group_id)s AND w.topic_id = %(topic_id)s AND w.fair_key > k.fair_key
            ORDER BY w.fair_key
            LIMIT 1
        )
        UNION ALL
        (
            SELECT w.fair_key, true AS is_round
            FROM waiting AS w
            WHERE w.group_id = %(group_id)s AND w.topic_id = %(topic_id)s AND NOT k.is_round
            ORDER BY w.fair_key
            LIMIT 1
        )
        LIMIT 1
    ) AS next
    WHERE k.number < %(most)s::bigint AND NOT (next.is_round AND next.fair_key > %(after)s::text)
)

SELECT
    v.fair_key, v.is_round,
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
FROM (
    SELECT k.*, CASE WHEN %(of_group)s::boolean THEN '' ELSE k.fair_key END AS value
    FROM (
        SELECT w.number, w.fair_key, w.is_round
        FROM walk AS w
        WHERE w.number > 0
        UNION ALL
        SELECT g.number, g.fair_key, true
        FROM unnest(%(fair_key)s::text []) WITH ORDINALITY AS g (fair_key, number)
    ) AS k
) AS v
ORDER BY v.number
