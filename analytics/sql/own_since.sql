-- Find since when this database has entries of its own: in a cell that was split off, since the fence of the split.
-- Earlier entries are copies of the parent's. Null in any other cell, and after a split by a version that noted no time.
SELECT (i.first_numbers ->> 'noted_at')::timestamptz AS since
FROM cell_identity AS i
