-- List the cells of the installation. Only the rows at the control count, not those in the database of another cell.
SELECT id, name, url, takes_topics, parent_id
FROM cell
ORDER BY id
