-- Count the deliveries of some topics. Reads only.
SELECT
    (SELECT count(*) FROM receipt AS r WHERE r.origin_topic_id = any(%(topics)s::integer []))
    + coalesce(
        (
            SELECT sum(length(replace(b.unsettled::bit(64)::text, '0', '')))
            FROM bundle AS b
            WHERE b.origin_topic_id = any(%(topics)s::integer [])
        ),
        0
    )::bigint AS receipts
