-- Read the bytes that all segments together take on disk, with indexes and large values.
SELECT coalesce(sum(pg_total_relation_size(part.oid)), 0)::bigint AS bytes
FROM pg_partitioned_table AS partitioned
INNER JOIN pg_class AS parent ON partitioned.partrelid = parent.oid
INNER JOIN pg_attribute AS key ON parent.oid = key.attrelid AND partitioned.partattrs[0] = key.attnum
INNER JOIN pg_inherits AS link ON parent.oid = link.inhparent
INNER JOIN pg_class AS part ON link.inhrelid = part.oid
WHERE key.attname = 'segment_id' AND pg_table_is_visible(parent.oid)
