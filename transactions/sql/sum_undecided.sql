-- Count the undecided transactions by their state, each state up to a limit, with the time of the oldest pending one:
-- one index probe per line of a producer group, because no index orders the half messages of all groups by time. Only
-- groups whose names begin with one of `starts` are counted; all names begin with the empty text.
-- Row: The numbers of undecided transactions by state, up to a limit, and when the oldest pending one was stored.
-- Null: oldest_pending_at.
SELECT
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM producer_group AS g
            CROSS JOIN LATERAL (
                SELECT 1
                FROM half_message AS h
                WHERE h.producer_group_id = g.id AND h.discarded_at IS NULL
                LIMIT %(max_count)s
            ) AS of_group
            WHERE g.name ^@ any(%(starts)s::text [])
            LIMIT %(max_count)s
        ) AS limited
    ) AS pending,
    (
        SELECT min(oldest.stored_at)
        FROM producer_group AS g
        CROSS JOIN (VALUES (0), (1), (6)) AS l (line)
        CROSS JOIN LATERAL (
            SELECT h.stored_at
            FROM half_message AS h
            WHERE h.producer_group_id = g.id AND h.line = l.line AND h.discarded_at IS NULL
            ORDER BY h.stored_at
            LIMIT 1
        ) AS oldest
        WHERE g.name ^@ any(%(starts)s::text [])
    ) AS oldest_pending_at,
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM half_message AS h
            INNER JOIN producer_group AS g ON h.producer_group_id = g.id
            WHERE h.discarded_at IS NOT NULL AND g.name ^@ any(%(starts)s::text [])
            LIMIT %(max_count)s
        ) AS limited
    ) AS discarded
