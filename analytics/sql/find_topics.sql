-- Find all topics with their ids, for the options of the data source that choose topics. The namespace stands before the
-- first % of a name; in the name of a retry or dead letter topic, between the first and the second %.
-- Row: A topic's name, id and namespace.
-- Null: namespace.
SELECT
    t.name, t.id,
    CASE
        WHEN strpos(t.name, chr(37)) > 1 THEN split_part(t.name, chr(37), 1)
        WHEN split_part(t.name, chr(37), 4) <> '' THEN split_part(t.name, chr(37), 3)
    END AS namespace
FROM topic AS t
