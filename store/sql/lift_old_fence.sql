-- End a fence whose time is over, by any process; no row where there is none, or its run goes on. A further epoch: what
-- sessions of the fence have learnt is old behind it.
UPDATE cell_identity
SET epoch = epoch + 1, fenced_until = NULL
WHERE fenced_until < clock_timestamp()
RETURNING epoch
