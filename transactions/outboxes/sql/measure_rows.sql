-- In a source: read the next rows in order, without those of closed topics, and the bytes of each field as the server
-- counts them now. Sizes stored in the table are not trusted. The length of a text is known without reading the text.
SELECT
    o.slot,
    o.seq,
    coalesce(octet_length(o.topic::text), 0) AS topic,
    coalesce(octet_length(o.body::text), octet_length(o.body_bytes), 0) AS body,
    coalesce(octet_length(o.tags::text), 0) AS tags,
    coalesce(octet_length(to_jsonb(o.keys)::text), 0) AS keys,
    coalesce(octet_length(o.sharding_key::text), 0) AS sharding_key,
    coalesce(octet_length(o.properties::text), 0) AS properties,
    coalesce(octet_length(o.traceparent::text), 0) AS traceparent
FROM mqbroker_outbox AS o
WHERE o.topic <> ALL(%(closed)s::text [])
ORDER BY o.seq
LIMIT %(max_rows)s
