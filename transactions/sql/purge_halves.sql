-- Delete the half messages of topics that have left this database for another cell, which has them now. Called during a
-- fence, so there is no other writer.
WITH gone AS (
    DELETE FROM half_message
    WHERE coalesce(topic_ids, ARRAY[topic_id]) && %(topics)s::integer []
    RETURNING 1
)

SELECT count(*) AS purged FROM gone
