-- Begin a fence of this cell, or lengthen the fence; each time with a new epoch. Two calls at once wait for each other
-- at the row.
-- Row: The epoch of a new fence, and when it was made, by the database's clock.
UPDATE cell_identity
SET epoch = epoch + 1, fenced_until = clock_timestamp() + make_interval(secs => %(seconds)s)
RETURNING epoch, clock_timestamp() AS fenced_at
