-- Count the deliveries in flight of several consumer groups, each up to a limit: what an ordered group holds or has parked
-- is not in flight.
SELECT g.group_id, counted.in_flight
FROM unnest(%(group_ids)s::integer []) AS g (group_id)
CROSS JOIN LATERAL (
    SELECT count(*) AS in_flight
    FROM (
        SELECT 1
        FROM receipt AS r
        WHERE r.group_id = g.group_id AND r.state = 'flight'
        LIMIT %(max_count)s
    ) AS limited
) AS counted
