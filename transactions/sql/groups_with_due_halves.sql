-- Find the producer groups that have half messages due for a check and an endpoint that may be called now, by one index
-- probe for each line of a group. For half messages of other groups no check is counted and no row is written. Groups
-- are returned in the order of their ids, beginning after a given group and continuing with the lowest id, so that each
-- has its turn if there are more than `max_groups`.
-- Row: A producer group with due checks and an endpoint that may be called.
SELECT g.id AS group_id, g.name
FROM producer_group AS g
CROSS JOIN LATERAL (
    SELECT min(h.next_check_at) AS next_check_at
    FROM (
        SELECT of_line.next_check_at
        FROM (VALUES (1), (6)) AS l (line)
        CROSS JOIN LATERAL (
            SELECT f.next_check_at
            FROM half_message AS f
            WHERE f.producer_group_id = g.id AND f.line = l.line AND f.discarded_at IS NULL
            ORDER BY f.stored_at
            LIMIT 1
        ) AS of_line
        UNION ALL
        (
            SELECT a.next_check_at
            FROM half_message AS a
            WHERE a.producer_group_id = g.id AND a.line = 0 AND a.discarded_at IS NULL
            ORDER BY a.next_check_at
            LIMIT 1
        )
    ) AS h
) AS first
WHERE
    NOT g.checks_paused AND first.next_check_at <= now() - make_interval(secs => %(late_seconds)s)
    AND g.id <> all(%(asking)s::integer [])
    AND EXISTS (
        SELECT 1
        FROM endpoint AS e
        WHERE e.group_id = g.id AND e.state <> 'disabled' AND coalesce(e.open_until <= now(), true)
    )
ORDER BY g.id <= %(after_id)s, g.id
LIMIT %(max_groups)s
