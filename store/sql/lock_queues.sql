-- Lock the queues that this transaction extends, in the sorted order given, until it ends. Their next offsets are read by
-- a later statement, whose snapshot then sees everything that earlier holders of these locks committed.
SELECT pg_advisory_xact_lock(q.topic_id, q.queue_id)
FROM unnest(%(topic_id)s::integer [], %(queue_id)s::integer []) AS q (topic_id, queue_id)
