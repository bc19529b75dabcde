-- Find the lowest id of an operation that is kept, and the one that comes next; both are that one where none is kept.
SELECT coalesce(kept.lowest, next.id) AS min_offset, next.id AS max_offset
FROM (
    SELECT s.last_value + s.is_called::integer AS id
    FROM operation_id AS s
) AS next
CROSS JOIN (
    SELECT (SELECT o.operation_id FROM operation AS o ORDER BY o.operation_id LIMIT 1) AS lowest
) AS kept
