-- Lock those of a reader's queues that are free, until the transaction ends, without waiting. Their positions are read
-- by a later statement, whose snapshot then sees every move that was committed before.
SELECT k.key, pg_try_advisory_xact_lock(k.key) AS taken
FROM unnest(%(keys)s::bigint []) AS k (key)
