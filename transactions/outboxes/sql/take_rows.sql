-- In a source: take rows that were measured, unless a row has grown since. Each field is returned as text and read by
-- itself, so that an invalid field concerns only its own row. If this transaction ends without a commit, its rows are
-- in the table again.
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
