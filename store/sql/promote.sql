-- Ask this standby to become a primary, without waiting: `read_replay` shows when it has become one.
SELECT pg_promote(false) AS is_asked
