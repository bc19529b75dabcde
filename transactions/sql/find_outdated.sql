-- Find half messages that are older than the retention: their segment is dropped soon, and checks must not keep them
-- longer. The groups are read from the half messages, by one index probe for each group and for each line, and not from
-- the table of groups, so that half messages of a deleted group are found too.
WITH RECURSIVE named AS (
    SELECT (SELECT h.producer_group_id FROM half_message AS h ORDER BY h.producer_group_id LIMIT 1) AS group_id
    UNION ALL
    SELECT (
        SELECT h.producer_group_id FROM half_message AS h
        WHERE h.producer_group_id > n.group_id
        ORDER BY h.producer_group_id
        LIMIT 1
    )
    FROM named AS n
    WHERE n.group_id IS NOT NULL
)

SELECT h.transaction_id
FROM named AS n
CROSS JOIN (VALUES (0), (1), (6)) AS l (line)
CROSS JOIN LATERAL (
    SELECT o.transaction_id
    FROM half_message AS o
    WHERE
        o.producer_group_id = n.group_id AND o.line = l.line AND o.discarded_at IS NULL
        AND o.stored_at < now() - make_interval(hours => %(reserved_hours)s::integer)
    ORDER BY o.stored_at
    LIMIT %(max_halves)s
) AS h
LIMIT %(max_halves)s
