-- Read the position up to which the WAL of this server is on disk. All acknowledged writes lie before this position.
SELECT pg_current_wal_flush_lsn()::text AS position
