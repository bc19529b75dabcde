-- End a fence of this cell, by the run that made it; no row if there is no fence. The epoch is raised, so that sessions
-- of the time of the fence read again what has left.
UPDATE cell_identity
SET epoch = epoch + 1, fenced_until = NULL
WHERE fenced_until IS NOT NULL
RETURNING epoch
