-- Delete the deliveries of topics that have left this database for another cell, and the entries that were read ahead
-- of these topics and the rates of their values. Runs behind a fence, so there is no other writer.
WITH gone AS (
    DELETE FROM receipt
    WHERE origin_topic_id = any(%(topics)s::integer [])
    RETURNING 1
),

bundled AS (
    DELETE FROM bundle
    WHERE origin_topic_id = any(%(topics)s::integer [])
    RETURNING length(replace(unsettled::bit(64)::text, '0', '')) AS deliveries
),

ahead AS (
    DELETE FROM waiting
    WHERE topic_id = any(%(topics)s::integer [])
),

paced AS (
    DELETE FROM pace
    WHERE topic_id = any(%(topics)s::integer [])
)

SELECT (SELECT count(*) FROM gone) + coalesce((SELECT sum(b.deliveries) FROM bundled AS b), 0)::bigint AS purged
