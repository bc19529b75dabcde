-- Delete the half messages of topics that have left this database: what is undecided of them lies in another cell. Behind a
-- fence, and so beside no other writer.
WITH gone AS (
    DELETE FROM half_message
    WHERE coalesce(topic_ids, ARRAY[topic_id]) && %(topics)s::integer []
    RETURNING 1
)

SELECT count(*) AS purged FROM gone
