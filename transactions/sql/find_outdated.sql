-- Find halves that are older than the retention: their segment goes soon, and no check may keep them longer.
SELECT h.transaction_id
FROM producer_group AS g
CROSS JOIN LATERAL (
    SELECT o.transaction_id
    FROM half_message AS o
    WHERE
        o.producer_group_id = g.id AND o.discarded_at IS NULL
        AND o.stored_at < now() - make_interval(hours => %(reserved_hours)s::integer)
    ORDER BY o.stored_at
    LIMIT %(max_halves)s
) AS h
LIMIT %(max_halves)s
