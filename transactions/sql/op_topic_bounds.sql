-- Find the lowest id of an operation that is kept, 0 while no segment was dropped, and the next id.
SELECT
    CASE WHEN kept.has_dropped THEN coalesce(kept.lowest, next.id) ELSE 0 END AS min_offset, next.id AS max_offset
FROM (
    SELECT s.last_value + s.is_called::integer AS id
    FROM operation_id AS s
) AS next
CROSS JOIN (
    SELECT
        (SELECT o.operation_id FROM operation AS o ORDER BY o.operation_id LIMIT 1) AS lowest,
        EXISTS (SELECT 1 FROM segment AS s WHERE s.state = 'dropped') AS has_dropped
) AS kept
