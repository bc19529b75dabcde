-- Read the bytes that each segment takes on disk: the sum of its partitions, with indexes and large values.
-- Row: The size of a segment on disk, and the part of its commit log.
-- Null: opened_at, closed_at.
SELECT
    s.id, s.state, s.opened_at, s.closed_at, sum(pg_total_relation_size(part.oid))::bigint AS bytes,
    max(pg_total_relation_size(part.oid)) FILTER (WHERE parent.relname = 'commit_log')::bigint AS log_bytes
FROM segment AS s
INNER JOIN pg_partitioned_table AS partitioned ON true
INNER JOIN pg_class AS parent ON partitioned.partrelid = parent.oid
INNER JOIN pg_inherits AS link ON parent.oid = link.inhparent
INNER JOIN pg_class AS part ON link.inhrelid = part.oid AND part.relname = parent.relname || '_' || s.id
WHERE s.state <> 'dropped' AND pg_table_is_visible(parent.oid)
GROUP BY s.id, s.state, s.opened_at, s.closed_at
ORDER BY s.id DESC
LIMIT %(max_rows)s
