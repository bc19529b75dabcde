-- In a source: take the turn and the next small rows in one statement, in the order of their numbers. Returns one row
-- without fields if there is no turn or no row to take. All rows are from one snapshot: rows that another session took
-- just before are gone when this statement deletes, and are not returned. Rows that have grown since they were measured
-- stay in the table. If a view or a rule returns more than was measured, no row is returned. A transaction that finds
-- nothing to do takes no lock and writes nothing, so its commit does not wait for the disk. Rows with larger keys or
-- properties than a message may have also stay, because writing them as JSON would take long (`measure_rows`).
WITH next_rows AS MATERIALIZED (
    SELECT
        m.slot,
        m.seq,
        sum(m.bytes) OVER (ORDER BY m.seq) AS bytes
    FROM (
        SELECT
            o.slot,
            o.seq,
            coalesce(octet_length(o.topic), 0) + coalesce(octet_length(o.body), octet_length(o.body_bytes), 0)
            + coalesce(octet_length(o.tags), 0)
            + CASE
                WHEN coalesce(pg_column_size(o.keys), 0) + coalesce(pg_column_size(o.properties), 0) > 163840
                THEN %(max_bytes)s + 1
                ELSE coalesce(octet_length(to_jsonb(o.keys)::text), 0) + coalesce(octet_length(o.properties::text), 0)
            END
            + coalesce(octet_length(o.sharding_key), 0) + coalesce(octet_length(o.traceparent), 0) AS bytes
        FROM mqbroker_outbox AS o
        ORDER BY o.seq
        LIMIT %(max_rows)s
    ) AS m
),

state AS MATERIALIZED (
    SELECT coalesce(pg_sequence_last_value(to_regclass('mqbroker_outbox_awake')) <> 2, s.asleep) AS asleep
    FROM mqbroker_outbox_state AS s
    LIMIT 1
),

turn AS MATERIALIZED (
    SELECT true AS is_mine
    FROM mqbroker_outbox_state AS s
    WHERE EXISTS (SELECT FROM next_rows) OR EXISTS (SELECT FROM state AS a WHERE NOT a.asleep)
    LIMIT 1
    FOR UPDATE SKIP LOCKED
),

taken AS (
    DELETE FROM mqbroker_outbox AS o
    USING next_rows AS w
    WHERE
        o.slot = w.slot AND o.seq = w.seq AND w.bytes <= %(max_bytes)s AND EXISTS (SELECT FROM turn)
        AND coalesce(octet_length(o.body), octet_length(o.body_bytes), 0) <= w.bytes
    RETURNING
        o.slot, o.seq, o.id, o.topic, o.body, o.body_bytes, o.tags, to_jsonb(o.keys)::text AS keys, o.sharding_key,
        o.properties::text AS properties, o.delay_level, o.delay_seconds, o.deliver_at, o.traceparent, o.created_at,
        coalesce(octet_length(o.topic), 0) + coalesce(octet_length(o.body), octet_length(o.body_bytes), 0)
        + coalesce(octet_length(o.properties::text), 0) AS bytes
),

counted AS (
    SELECT
        t.*,
        sum(t.bytes) OVER () AS all_bytes,
        count(*) OVER () AS all_rows
    FROM taken AS t
)

SELECT
    s.asleep,
    f.slot AS first_slot,
    f.seq AS first_seq,
    EXISTS (SELECT FROM turn) AS is_mine,
    (SELECT count(*) FROM next_rows) AS waiting,
    c.slot,
    c.seq,
    c.id::text AS id,
    c.topic::text AS topic,
    c.body::text AS body,
    c.body_bytes,
    c.tags::text AS tags,
    c.keys,
    c.sharding_key::text AS sharding_key,
    c.properties,
    c.delay_level::text AS delay_level,
    c.delay_seconds::text AS delay_seconds,
    c.deliver_at::text AS deliver_at,
    c.traceparent::text AS traceparent,
    c.created_at::text AS created_at
FROM state AS s
LEFT JOIN (SELECT w.slot, w.seq FROM next_rows AS w ORDER BY w.seq LIMIT 1) AS f ON true
LEFT JOIN counted AS c ON c.all_bytes <= %(max_bytes)s AND c.all_rows <= %(max_rows)s
