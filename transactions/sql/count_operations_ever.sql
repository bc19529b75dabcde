-- Count the operation ids that this cell ever took from their sequence: those of failed writes are among them, and dropped
-- segments change nothing.
SELECT
    CASE
        WHEN s.is_called THEN s.last_value + 1 - coalesce((i.first_numbers ->> 'operation_id')::bigint, 1) ELSE 0
    END AS operations
FROM operation_id AS s
CROSS JOIN cell_identity AS i
