-- In a source: set those of the next rows apart that are too large for a message. This process never reads them.
WITH large AS (
    DELETE FROM mqbroker_outbox
    WHERE seq IN (SELECT o.seq FROM mqbroker_outbox AS o ORDER BY o.seq LIMIT %(max_rows)s) AND bytes > %(max_row_bytes)s
    RETURNING
        id, topic, body, body_bytes, tags, keys, sharding_key, properties, delay_level, delay_seconds, deliver_at,
        traceparent, created_at
)

INSERT INTO mqbroker_outbox_refused
(
    id, topic, body, body_bytes, tags, keys, sharding_key, properties, delay_level, delay_seconds, deliver_at,
    traceparent, created_at, reason
)
SELECT
    l.id, l.topic, l.body, l.body_bytes, l.tags, l.keys, l.sharding_key, l.properties, l.delay_level, l.delay_seconds,
    l.deliver_at, l.traceparent, l.created_at, %(reason)s
FROM large AS l
