-- Read the open segment and the database's time. A writer of the log has taken its shared lock in an earlier statement
-- (`join_writers`), so this snapshot is later than the lock: the segment stays open until the transaction ends.
SELECT id, now() AS now
FROM segment
WHERE state = 'open'
