-- Join the writers of the log and learn the open segment and the database's time. The shared lock is held to the end of
-- the transaction: a session that takes the same lock exclusively (the roll, an export) knows that no append is under way.
-- The lock stands in a statement of its own before this one, so that this one's snapshot is later than the lock.
SELECT id, now() AS now
FROM segment
WHERE state = 'open'
