-- Make this database another cell. Called during a fence, so no session writes with the earlier cell's id any more.
UPDATE cell_identity
SET cell_id = %(cell_id)s, epoch = epoch + 1, fenced_until = NULL
