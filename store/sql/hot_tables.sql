-- Read how the small tables fare in which rows come and go: their live and dead rows by PostgreSQL's statistics, and when they
-- were vacuumed last.
SELECT
    t.relname::text AS name, t.n_live_tup AS live, t.n_dead_tup AS dead,
    greatest(t.last_vacuum, t.last_autovacuum) AS vacuumed_at, pg_total_relation_size(t.relid) AS bytes
FROM pg_stat_user_tables AS t
WHERE t.relname = any(%(names)s::text []) AND pg_table_is_visible(t.relid)
ORDER BY t.n_dead_tup DESC, t.relname
