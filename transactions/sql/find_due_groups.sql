-- Find producer groups by name, and whether each has half messages due for a check and is not paused: one index probe
-- for each line of a group.
-- Row: A producer group, and whether it has due checks.
SELECT
    g.name,
    coalesce(NOT g.checks_paused AND first.next_check_at <= now(), false) AS is_due
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
WHERE g.name = any(%(names)s::text [])
