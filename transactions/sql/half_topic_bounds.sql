-- Find the lowest log offset that is kept, and the one that comes next; both are that one where nothing is kept.
SELECT coalesce(kept.lowest, next.log_offset) AS min_offset, next.log_offset AS max_offset
FROM (
    SELECT s.last_value + s.is_called::integer AS log_offset
    FROM commit_log_offset AS s
) AS next
CROSS JOIN (
    SELECT (SELECT l.log_offset FROM commit_log AS l ORDER BY l.log_offset LIMIT 1) AS lowest
) AS kept
