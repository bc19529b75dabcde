-- List the cells of the installation. Only the rows at the control count, not rows in the database of another cell.
-- Row: A cell in the control's list. `url` is the stored text; `sealing.opened` returns the URL for libpq.
-- Null: parent_id.
SELECT id, name, url, takes_topics, parent_id
FROM cell
ORDER BY id
