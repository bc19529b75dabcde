-- The commit log for Spark, which adds the closed range of each slice and reads the columns that its schema names.
-- `weight` is what a row takes in memory, nearly: heavy rows are fetched in smaller steps. The length of a body is known
-- without reading the body.
SELECT
    l.*,
    octet_length(l.body) + coalesce(octet_length(l.properties), 0)
    + coalesce(octet_length(array_to_string(l.keys, ' ')), 0) AS weight
FROM commit_log AS l
