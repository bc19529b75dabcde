-- End a fence of this cell: by the run that made it, or by any process once the time of the fence is over. Returns no
-- row if there is no fence, or if the run that made the fence holds it. The epoch is raised, so that sessions that
-- began during the fence read again which topics have left.
UPDATE cell_identity
SET epoch = epoch + 1, fenced_until = NULL
WHERE fenced_until IS NOT NULL AND (%(by_its_run)s OR fenced_until < clock_timestamp())
RETURNING epoch
