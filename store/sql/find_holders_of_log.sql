-- Find the tables, beside the append-only ones, whose rows say where a message lies in the log: those with a column
-- log_segment. Whoever adds such a table is found here, and no log goes while a row of it needs that log.
SELECT holder.relname AS table_name
FROM pg_class AS holder
INNER JOIN pg_attribute AS place ON holder.oid = place.attrelid
WHERE
    place.attname = 'log_segment' AND NOT place.attisdropped AND holder.relkind = 'r' AND NOT holder.relispartition
    AND pg_table_is_visible(holder.oid)
ORDER BY holder.relname
