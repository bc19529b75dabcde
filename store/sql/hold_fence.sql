-- Have a fence stand until the run that made it ends it; no row where it was ended before. Safe against a process that ends
-- a fence whose time is over: both update this row, and the later one finds what the earlier one has made of it. The last
-- moment that Python has, too: a list and a page read this row.
UPDATE cell_identity
SET fenced_until = '9999-12-31 00:00:00+00'
WHERE epoch = %(epoch)s AND fenced_until IS NOT NULL
RETURNING epoch
