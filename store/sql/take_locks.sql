-- Take advisory locks in the sorted order given, until the transaction ends. What they guard is read by a later statement,
-- whose snapshot then sees whatever was committed under them before.
SELECT pg_advisory_xact_lock(k.key)
FROM unnest(%(keys)s::bigint []) AS k (key)
