-- Delete the deliveries of topics that have left this database: they go on in another cell. Behind a fence, and so beside no
-- other writer.
WITH gone AS (
    DELETE FROM receipt
    WHERE origin_topic_id = any(%(topics)s::integer [])
    RETURNING 1
)

SELECT count(*) AS purged FROM gone
