-- Remove the time limit of a fence, so that only its run can end it; no row is returned if the fence has already ended.
-- Safe against a process that ends a fence whose time is over: both update this row, and the later update sees the
-- result of the earlier. The limit is set to the latest time that Python can read, because a list and a page read this
-- row.
UPDATE cell_identity
SET fenced_until = '9999-12-31 00:00:00+00'
WHERE epoch = %(epoch)s AND fenced_until IS NOT NULL
RETURNING epoch
