-- Set the cell in the copies of some topics to the value that the control's rows have or will have. Called during a
-- fence.
UPDATE topic
SET cell_id = %(cell_id)s
WHERE id = any(%(topics)s::integer [])
