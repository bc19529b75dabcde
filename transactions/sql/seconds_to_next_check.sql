-- Find the seconds until a group's next check is due, by one index probe for each line; null without a pending half
-- message.
SELECT extract(EPOCH FROM min(h.next_check_at) - now())::double precision AS seconds
FROM (
    SELECT of_line.next_check_at
    FROM (VALUES (1), (6)) AS l (line)
    CROSS JOIN LATERAL (
        SELECT f.next_check_at
        FROM half_message AS f
        WHERE f.producer_group_id = %(group_id)s AND f.line = l.line AND f.discarded_at IS NULL
        ORDER BY f.stored_at
        LIMIT 1
    ) AS of_line
    UNION ALL
    (
        SELECT a.next_check_at
        FROM half_message AS a
        WHERE a.producer_group_id = %(group_id)s AND a.line = 0 AND a.discarded_at IS NULL AND NOT a.exhausted
        ORDER BY a.next_check_at
        LIMIT 1
    )
) AS h
