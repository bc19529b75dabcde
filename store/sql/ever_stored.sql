-- Read how many log offsets this cell has ever taken, including those of failed writes and of dropped segments.
SELECT
    CASE
        WHEN s.is_called THEN s.last_value + 1 - coalesce((i.first_numbers ->> 'commit_log_offset')::bigint, 0) ELSE 0
    END AS messages
FROM commit_log_offset AS s
CROSS JOIN cell_identity AS i
