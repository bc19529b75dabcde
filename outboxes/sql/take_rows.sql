-- In a source: take the next rows in their order, as many as have so many bytes together, and at least one, but for those
-- that are too large. What this transaction takes is there again when it ends without a commit.
WITH next_rows AS (
    SELECT
        o.slot,
        o.seq,
        o.bytes
    FROM mqbroker_outbox AS o
    ORDER BY o.seq
    LIMIT %(max_rows)s
),

fitting AS (
    SELECT
        n.slot,
        n.seq,
        sum(n.bytes) OVER (ORDER BY n.seq) - n.bytes AS bytes_before
    FROM next_rows AS n
    WHERE n.bytes <= %(max_row_bytes)s
)

DELETE FROM mqbroker_outbox AS o
USING fitting AS f
WHERE o.slot = f.slot AND o.seq = f.seq AND f.bytes_before < %(max_bytes)s
RETURNING
    o.slot,
    o.seq,
    o.id,
    o.topic,
    o.body,
    o.body_bytes,
    o.tags,
    o.keys,
    o.sharding_key,
    o.properties::text AS properties,
    o.delay_level,
    o.delay_seconds,
    o.deliver_at,
    o.traceparent,
    o.created_at
