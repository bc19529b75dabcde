-- Find the lowest kept offset of half messages, or of operations (0 while no segment was dropped), and the next offset.
-- The offset of a half message is its log offset, and the offset of an operation its id.
-- Row: The lowest offset that is kept, and the next offset.
SELECT
    CASE WHEN kept.has_dropped THEN coalesce(kept.lowest, next.number) ELSE 0 END AS min_offset,
    next.number AS max_offset
FROM (
    SELECT
        CASE
            WHEN %(of_halves)s THEN (SELECT s.last_value + s.is_called::integer FROM commit_log_offset AS s)
            ELSE (SELECT s.last_value + s.is_called::integer FROM operation_id AS s)
        END AS number
) AS next
CROSS JOIN (
    SELECT
        CASE
            WHEN %(of_halves)s THEN (SELECT l.log_offset FROM commit_log AS l ORDER BY l.log_offset LIMIT 1)
            ELSE (SELECT o.operation_id FROM operation AS o ORDER BY o.operation_id LIMIT 1)
        END AS lowest,
        EXISTS (SELECT 1 FROM segment AS s WHERE s.state = 'dropped') AS has_dropped
) AS kept
