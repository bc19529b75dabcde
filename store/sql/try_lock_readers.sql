-- Try to lock each of a reader's queues until the transaction ends, without waiting for a queue that is locked. A later
-- statement reads their positions, and its snapshot sees every move that was committed before.
-- Row: An advisory lock, and whether it was free.
SELECT k.key, pg_try_advisory_xact_lock(k.key) AS taken
FROM unnest(%(keys)s::bigint []) AS k (key)
