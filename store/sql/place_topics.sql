-- Have the copies of some topics name another cell, as the control's rows will, or do. Behind a fence.
UPDATE topic
SET cell_id = %(cell_id)s
WHERE id = any(%(topics)s::integer [])
