-- Count the deliveries in flight by group: handed out, not settled, invisible time not over. Held and parked messages of an
-- ordered group are not in flight. One pass over all receipts and bundles, which are few: each is deleted within hours.
SELECT f.group_id, sum(f.deliveries)::bigint AS deliveries
FROM (
    SELECT r.group_id, count(*) AS deliveries
    FROM receipt AS r
    WHERE r.state = 'flight' AND r.expires_at > now()
    GROUP BY r.group_id
    UNION ALL
    SELECT b.group_id, sum(length(replace(b.unsettled::bit(64)::text, '0', '')))
    FROM bundle AS b
    WHERE b.expires_at > now()
    GROUP BY b.group_id
) AS f
GROUP BY f.group_id
