-- List the cells of the installation. Their rows are the control's: those of another cell's database are of no use.
SELECT id, name, url, takes_topics, parent_id
FROM cell
ORDER BY id
