-- Make this database another cell, behind a fence: nothing of it is written under its earlier number from now on.
UPDATE cell_identity
SET cell_id = %(cell_id)s, epoch = epoch + 1, fenced_until = NULL
