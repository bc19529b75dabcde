-- Lock the queues that this transaction extends until it ends, in the given sorted order. A later statement reads their
-- next offsets, and its snapshot sees everything that earlier holders of these locks have committed.
SELECT pg_advisory_xact_lock(q.topic_id, q.queue_id)
FROM unnest(%(topic_id)s::integer [], %(queue_id)s::integer []) AS q (topic_id, queue_id)
