-- Find the tables partitioned by segment whose statistics are older than the open segment. Autovacuum analyzes
-- partitions only, never the partitioned table.
SELECT parent.relname AS table_name
FROM pg_partitioned_table AS partitioned
INNER JOIN pg_class AS parent ON partitioned.partrelid = parent.oid
INNER JOIN pg_attribute AS key ON parent.oid = key.attrelid AND partitioned.partattrs[0] = key.attnum
INNER JOIN segment AS s ON s.state = 'open'
WHERE
    partitioned.partstrat = 'l' AND key.attname = 'segment_id' AND pg_table_is_visible(parent.oid)
    AND coalesce(pg_stat_get_last_analyze_time(parent.oid) < s.opened_at, true)
ORDER BY parent.relname
