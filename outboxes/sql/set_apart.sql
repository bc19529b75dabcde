-- In a source: set rows apart that no message can be made of, each with the reason.
INSERT INTO mqbroker_outbox_refused
(
    id, topic, body, body_bytes, tags, keys, sharding_key, properties, delay_level, delay_seconds, deliver_at,
    traceparent, created_at, reason
)
VALUES
(
    %(id)s, %(topic)s, %(body)s, %(body_bytes)s, %(tags)s, %(keys)s, %(sharding_key)s, %(properties)s::jsonb,
    %(delay_level)s, %(delay_seconds)s, %(deliver_at)s, %(traceparent)s, %(created_at)s, %(reason)s
)
