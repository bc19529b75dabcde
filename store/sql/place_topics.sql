-- Set the cell in the copies of some topics, as the control's rows have it or will have it. Called during a fence.
UPDATE topic
SET cell_id = %(cell_id)s
WHERE id = any(%(topics)s::integer [])
