-- Create a consumer group unless another process just did: a conflict inserts nothing, and the caller reads the row then.
INSERT INTO consumer_group (name, start_at, ordered, retry_policy, paused)
VALUES (%(name)s, 'earliest', false, '{"kind": "table"}', false)
ON CONFLICT (name) DO NOTHING
