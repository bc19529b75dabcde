-- End a fence whose time is over, by any process; no row if there is no fence or its run holds it. The epoch is raised,
-- so that sessions of the time of the fence read again what has left.
UPDATE cell_identity
SET epoch = epoch + 1, fenced_until = NULL
WHERE fenced_until < clock_timestamp()
RETURNING epoch
