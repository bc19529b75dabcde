-- Have this standby take writes; it is asked for only, and `read_replay` says when it does.
SELECT pg_promote(false) AS is_asked
