-- Count the pending transactions of each producer group that has some, up to a limit, with the time of the oldest, by
-- the index of a group's half messages. A group without pending transactions takes one probe for each line.
-- Row: A producer group with pending transactions: their number, up to a limit, and when the oldest was stored.
SELECT g.id AS group_id, g.name AS producer_group, g.checks_paused, counted.pending, oldest.stored_at AS oldest_pending_at
FROM producer_group AS g
CROSS JOIN LATERAL (
    SELECT min(of_line.stored_at) AS stored_at
    FROM (VALUES (0), (1), (6)) AS l (line)
    CROSS JOIN LATERAL (
        SELECT h.stored_at
        FROM half_message AS h
        WHERE h.producer_group_id = g.id AND h.line = l.line AND h.discarded_at IS NULL
        ORDER BY h.stored_at
        LIMIT 1
    ) AS of_line
) AS oldest
CROSS JOIN LATERAL (
    SELECT count(*) AS pending
    FROM (
        SELECT 1
        FROM half_message AS h
        WHERE h.producer_group_id = g.id AND h.discarded_at IS NULL
        LIMIT %(max_count)s
    ) AS limited
) AS counted
WHERE oldest.stored_at IS NOT NULL
ORDER BY counted.pending DESC, g.name
LIMIT %(max_groups)s
