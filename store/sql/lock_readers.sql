-- Lock a reader's positions in the sorted order given, until the transaction ends. They are read by a later statement,
-- whose snapshot then sees every move that was committed before.
SELECT pg_advisory_xact_lock(k.key)
FROM unnest(%(keys)s::bigint []) AS k (key)
