-- Find the segments that may hold rows, and the time of the snapshot. A segment that is only ready is empty.
-- Row: A segment that is open or closed, and the time of the snapshot.
SELECT id, state, now() AS taken_at
FROM segment
WHERE state IN ('open', 'closed')
ORDER BY id
