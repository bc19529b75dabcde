-- Find the tables, except the append-only ones, whose rows contain a log position: they have a column log_segment. A
-- table that is added later is found too, so no log is dropped while a row of that table needs it.
SELECT holder.relname AS table_name
FROM pg_class AS holder
INNER JOIN pg_attribute AS position ON holder.oid = position.attrelid
WHERE
    position.attname = 'log_segment' AND NOT position.attisdropped AND holder.relkind = 'r' AND NOT holder.relispartition
    AND pg_table_is_visible(holder.oid)
ORDER BY holder.relname
