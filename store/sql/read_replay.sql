-- Read how many bytes of WAL this standby has still to replay up to a position, and whether it still is a standby. A
-- promoted standby has replayed all WAL that it had.
-- Row: The bytes of WAL that a standby has still to replay up to a position; None while it has replayed nothing.
-- Null: lag_bytes.
SELECT
    pg_wal_lsn_diff(%(position)s::pg_lsn, pg_last_wal_replay_lsn())::bigint AS lag_bytes,
    pg_is_in_recovery() AS is_standby
