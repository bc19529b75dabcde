-- In a source: take rows that were measured, unless one has grown since. Each field comes as text, which is read field by
-- field: one that cannot be read holds up its own row alone. What this transaction takes is there again when it ends
-- without a commit.
DELETE FROM mqbroker_outbox AS o
USING unnest(%(slots)s::smallint[], %(seqs)s::bigint[]) AS t (slot, seq)
WHERE
    o.slot = t.slot AND o.seq = t.seq
    AND coalesce(octet_length(o.body::text), octet_length(o.body_bytes), 0) <= %(max_row_bytes)s
RETURNING
    o.slot,
    o.seq,
    o.id::text AS id,
    o.topic::text AS topic,
    o.body::text AS body,
    o.body_bytes,
    o.tags::text AS tags,
    to_jsonb(o.keys)::text AS keys,
    o.sharding_key::text AS sharding_key,
    o.properties::text AS properties,
    o.delay_level::text AS delay_level,
    o.delay_seconds::text AS delay_seconds,
    o.deliver_at::text AS deliver_at,
    o.traceparent::text AS traceparent,
    o.created_at::text AS created_at
