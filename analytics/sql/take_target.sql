-- Take the folder of an export for the rest of this transaction, unless another session exports to it. The lock goes with
-- the session: an export that is killed leaves nothing to be cleared.
SELECT pg_try_advisory_xact_lock(hashtextextended('mqbroker export to ' || %(target)s::text, 0)) AS taken
