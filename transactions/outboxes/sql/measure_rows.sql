-- In a source: read the next rows in order, without rows of closed topics, and the bytes of each field as the server
-- counts them now. Sizes stored in the table are not trusted. The length of a text can be read without the text.
-- Keys and properties that take more than 163,840 bytes on disk are larger than the limit for a message. Their bytes on
-- disk are counted, because an array of 200 MB takes longer to write as JSON than a statement may.
SELECT
    o.slot,
    o.seq,
    coalesce(octet_length(o.topic::text), 0) AS topic,
    coalesce(octet_length(o.body::text), octet_length(o.body_bytes), 0) AS body,
    coalesce(octet_length(o.tags::text), 0) AS tags,
    CASE
        WHEN pg_column_size(o.keys) > 163840 THEN pg_column_size(o.keys)
        ELSE coalesce(octet_length(to_jsonb(o.keys)::text), 0)
    END AS keys,
    coalesce(octet_length(o.sharding_key::text), 0) AS sharding_key,
    CASE
        WHEN pg_column_size(o.properties) > 163840 THEN pg_column_size(o.properties)
        ELSE coalesce(octet_length(o.properties::text), 0)
    END AS properties,
    coalesce(octet_length(o.traceparent::text), 0) AS traceparent
FROM mqbroker_outbox AS o
WHERE o.topic <> ALL(%(closed)s::text [])
ORDER BY o.seq
LIMIT %(max_rows)s
