-- Read the number of this server's standbys, how many bytes of WAL the slowest has still to replay (NULL without a
-- standby, and for a role that may not see them), and the number of the last message.
-- Row: The number of standbys, the WAL that the slowest has still to replay in bytes, and the last message's number.
--    `lag_bytes` is None without a standby, or if the role may not read it.
-- Null: lag_bytes.
SELECT
    count(*)::integer AS standbys,
    max(pg_wal_lsn_diff(pg_current_wal_lsn(), r.replay_lsn))::bigint AS lag_bytes,
    (SELECT s.last_value FROM commit_log_offset AS s) AS last_number
FROM pg_stat_replication AS r
