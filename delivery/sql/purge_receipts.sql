-- Delete the deliveries of topics that have left this database for another cell, and the entries that were read ahead
-- of these topics. Runs behind a fence, so there is no other writer.
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
