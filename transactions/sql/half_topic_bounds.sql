-- Find the lowest log offset that is kept, 0 while no segment was dropped, and the next log offset.
-- Row: The lowest offset that is kept, and the next offset.
SELECT
    CASE WHEN kept.has_dropped THEN coalesce(kept.lowest, next.log_offset) ELSE 0 END AS min_offset, next.log_offset AS max_offset
FROM (
    SELECT s.last_value + s.is_called::integer AS log_offset
    FROM commit_log_offset AS s
) AS next
CROSS JOIN (
    SELECT
        (SELECT l.log_offset FROM commit_log AS l ORDER BY l.log_offset LIMIT 1) AS lowest,
        EXISTS (SELECT 1 FROM segment AS s WHERE s.state = 'dropped') AS has_dropped
) AS kept
