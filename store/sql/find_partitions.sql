-- Find every table that is partitioned by segment, with its partition of one segment and the partition's state:
-- missing, attached, detaching (a DETACH ... CONCURRENTLY was interrupted) or detached. The catalog shows what an
-- interrupted step has done, so each step continues from this state.
SELECT
    parent.relname AS table_name,
    parent.relname || '_' || %(segment_id)s AS partition_name,
    CASE
        WHEN part.oid IS NULL THEN 'missing'
        WHEN link.inhrelid IS NULL THEN 'detached'
        WHEN link.inhdetachpending THEN 'detaching'
        ELSE 'attached'
    END AS state
FROM pg_partitioned_table AS partitioned
INNER JOIN pg_class AS parent ON partitioned.partrelid = parent.oid
INNER JOIN pg_attribute AS key ON parent.oid = key.attrelid AND partitioned.partattrs[0] = key.attnum
LEFT JOIN pg_class AS part
    ON parent.relnamespace = part.relnamespace AND part.relname = parent.relname || '_' || %(segment_id)s
LEFT JOIN pg_inherits AS link ON part.oid = link.inhrelid AND parent.oid = link.inhparent
WHERE
    partitioned.partstrat = 'l' AND partitioned.partnatts = 1 AND key.attname = 'segment_id'
    AND pg_table_is_visible(parent.oid)
ORDER BY parent.relname
