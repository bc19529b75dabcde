-- Create a consumer group. If another process has just created it, the conflict inserts nothing and the caller reads
-- the row.
INSERT INTO consumer_group (name, start_at, ordered, retry_policy, paused)
VALUES (%(name)s, 'earliest', false, '{"kind": "table"}', false)
ON CONFLICT (name) DO NOTHING
