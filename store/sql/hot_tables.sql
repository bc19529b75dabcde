-- Read the live and dead rows of the small tables whose rows are soon deleted, by PostgreSQL's statistics, and when the
-- tables were last vacuumed.
-- Row: A small table whose rows are deleted soon after they are written, with its live and dead rows.
-- Null: vacuumed_at.
SELECT
    t.relname::text AS name, t.n_live_tup AS live, t.n_dead_tup AS dead,
    greatest(t.last_vacuum, t.last_autovacuum) AS vacuumed_at, pg_total_relation_size(t.relid) AS bytes
FROM pg_stat_user_tables AS t
WHERE t.relname = any(%(names)s::text []) AND pg_table_is_visible(t.relid)
ORDER BY t.n_dead_tup DESC, t.relname
