-- Find the tables, beside the append-only ones, whose rows name a log position: those with a column log_segment. A
-- table that is added later is found here too, and no log is dropped while a row of it needs that log.
SELECT holder.relname AS table_name
FROM pg_class AS holder
INNER JOIN pg_attribute AS position ON holder.oid = position.attrelid
WHERE
    position.attname = 'log_segment' AND NOT position.attisdropped AND holder.relkind = 'r' AND NOT holder.relispartition
    AND pg_table_is_visible(holder.oid)
ORDER BY holder.relname
