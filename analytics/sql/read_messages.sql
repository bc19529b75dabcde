-- The messages for the export, which adds the closed range of each slice and reads the columns that its table names.
-- `weight` is what a row takes in memory, nearly: by JDBC heavy rows are fetched in smaller steps. The length of a body
-- is known without reading the body. A name is null when its topic or group is deleted.
SELECT
    l.*, l.segment_id AS segment, t.name AS topic, g.name AS producer_group, octet_length(l.body) AS body_bytes,
    octet_length(l.body) + coalesce(octet_length(l.properties), 0)
    + coalesce(octet_length(array_to_string(l.keys, ' ')), 0) AS weight
FROM commit_log AS l
LEFT JOIN topic AS t ON l.topic_id = t.id
LEFT JOIN producer_group AS g ON l.producer_group_id = g.id
