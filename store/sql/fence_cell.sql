-- Begin a fence of this cell, or make one that stands longer: its epoch is another one from now on. The row's lock has two
-- of them follow each other.
UPDATE cell_identity
SET epoch = epoch + 1, fenced_until = clock_timestamp() + make_interval(secs => %(seconds)s)
RETURNING epoch, clock_timestamp() AS fenced_at
