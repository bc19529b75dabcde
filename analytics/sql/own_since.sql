-- Find the time since which this database has its own entries: in a cell that was split off, the time of the fence of
-- the split. Earlier entries are copies of the parent's entries. Null in any other cell, and after a split by a version
-- that noted no time.
SELECT (i.first_numbers ->> 'noted_at')::timestamptz AS since
FROM cell_identity AS i
