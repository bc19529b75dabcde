-- Create a consumer group unless another process just did; the caller reads it afterwards either way.
INSERT INTO consumer_group (name, start_at, ordered, retry_policy, paused)
VALUES (%(name)s, 'earliest', false, '{"kind": "table"}', false)
ON CONFLICT (name) DO NOTHING
