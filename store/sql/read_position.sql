-- Read how far the WAL of this server is on disk. Whatever was acknowledged lies before.
SELECT pg_current_wal_flush_lsn()::text AS position
