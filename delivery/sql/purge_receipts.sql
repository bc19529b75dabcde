-- Delete the deliveries of topics that have left this database, and what was read ahead of them: they go on in another cell. Behind a fence, and so beside no
-- other writer.
WITH gone AS (
    DELETE FROM receipt
    WHERE origin_topic_id = any(%(topics)s::integer [])
    RETURNING 1
),

ahead AS (
    DELETE FROM waiting
    WHERE topic_id = any(%(topics)s::integer [])
)

SELECT count(*) AS purged FROM gone
