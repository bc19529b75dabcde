-- End a fence of this cell, by the run that made it; no row where there is none. A further epoch: what sessions of the fence
-- have learnt is old behind it.
UPDATE cell_identity
SET epoch = epoch + 1, fenced_until = NULL
WHERE fenced_until IS NOT NULL
RETURNING epoch
