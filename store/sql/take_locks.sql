-- Take advisory locks until the transaction ends, in the given sorted order. A later statement reads the rows that the
-- locks protect, and its snapshot sees everything that earlier holders have committed.
SELECT pg_advisory_xact_lock(k.key)
FROM unnest(%(keys)s::bigint []) AS k (key)
