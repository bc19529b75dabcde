-- Read the open segment and the database's time. A writer has taken the shared lock of the log in an earlier statement
-- (`join_writers`), so this snapshot is newer than the lock, and the segment stays open until the transaction ends.
-- Row: The open segment, and the database's time in this transaction.
SELECT id, now() AS now
FROM segment
WHERE state = 'open'
