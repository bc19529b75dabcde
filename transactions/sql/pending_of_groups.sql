-- Count the pending transactions of several producer groups, each up to a limit, with the time of each group's oldest,
-- by the index of a group's half messages.
-- Row: The pending transactions of a producer group: their number, up to a limit, and when the oldest was stored.
-- Null: oldest_pending_at.
SELECT g.group_id, counted.pending, oldest.stored_at AS oldest_pending_at
FROM unnest(%(group_ids)s::integer []) AS g (group_id)
CROSS JOIN LATERAL (
    SELECT count(*) AS pending
    FROM (
        SELECT 1
        FROM half_message AS h
        WHERE h.producer_group_id = g.group_id AND h.discarded_at IS NULL
        LIMIT %(max_count)s
    ) AS limited
) AS counted
LEFT JOIN LATERAL (
    SELECT min(of_line.stored_at) AS stored_at
    FROM (VALUES (0), (1), (6)) AS l (line)
    CROSS JOIN LATERAL (
        SELECT h.stored_at
        FROM half_message AS h
        WHERE h.producer_group_id = g.group_id AND h.line = l.line AND h.discarded_at IS NULL
        ORDER BY h.stored_at
        LIMIT 1
    ) AS of_line
) AS oldest ON true
