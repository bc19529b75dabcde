-- Lock those of a reader's positions that nobody else has locked, until the transaction ends, without waiting. They are
-- read by a later statement, whose snapshot then sees every move that was committed before.
SELECT k.key, pg_try_advisory_xact_lock(k.key) AS taken
FROM unnest(%(keys)s::bigint []) AS k (key)
