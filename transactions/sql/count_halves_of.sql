-- Count the half messages of some topics, and how many also have messages of other topics. Changes nothing.
-- Row: The number of half messages of some topics; `torn`: how many of them also have messages of other topics;
-- `example`: one of these.
-- Null: example.
SELECT
    count(*) AS halves,
    count(*) FILTER (WHERE NOT coalesce(h.topic_ids, ARRAY[h.topic_id]) <@ %(topics)s::integer []) AS torn,
    min(h.transaction_id::text)
        FILTER (WHERE NOT coalesce(h.topic_ids, ARRAY[h.topic_id]) <@ %(topics)s::integer []) AS example
FROM half_message AS h
WHERE coalesce(h.topic_ids, ARRAY[h.topic_id]) && %(topics)s::integer []
