-- Take an action for the rest of this transaction, unless another session has it. The lock goes with the session: a worker
-- that is killed leaves nothing to be cleared, and the row itself stays free to be paused or cancelled meanwhile.
SELECT pg_try_advisory_xact_lock(hashtextextended(%(action_id)s::text, 0)) AS taken
