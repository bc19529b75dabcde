-- Read how many log offsets this cell ever took. Those of failed writes are among them; dropped segments change nothing.
SELECT
    CASE
        WHEN s.is_called THEN s.last_value + 1 - coalesce((i.first_numbers ->> 'commit_log_offset')::bigint, 0) ELSE 0
    END AS messages
FROM commit_log_offset AS s
CROSS JOIN cell_identity AS i
