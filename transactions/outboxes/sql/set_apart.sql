-- In a source: set apart rows that cannot become messages, each with the reason. The rows are moved within the server,
-- so they need not be readable for this process.
WITH moved AS (
    DELETE FROM mqbroker_outbox AS o
    USING unnest(%(slots)s::smallint[], %(seqs)s::bigint[], %(reasons)s::text[]) AS t (slot, seq, reason)
    WHERE o.slot = t.slot AND o.seq = t.seq
    RETURNING
        o.id, o.topic, o.body, o.body_bytes, o.tags, o.keys, o.sharding_key, o.properties, o.delay_level,
        o.delay_seconds, o.deliver_at, o.traceparent, o.created_at, t.reason
)

INSERT INTO mqbroker_outbox_refused
(
    id, topic, body, body_bytes, tags, keys, sharding_key, properties, delay_level, delay_seconds, deliver_at,
    traceparent, created_at, reason
)
SELECT
    m.id, m.topic, m.body, m.body_bytes, m.tags, m.keys, m.sharding_key, m.properties, m.delay_level, m.delay_seconds,
    m.deliver_at, m.traceparent, m.created_at, m.reason
FROM moved AS m
