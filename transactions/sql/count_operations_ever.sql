-- Count the operation ids that this cell has ever taken from the sequence, including those of failed writes and of
-- dropped segments.
SELECT
    CASE
        WHEN s.is_called THEN s.last_value + 1 - coalesce((i.first_numbers ->> 'operation_id')::bigint, 1) ELSE 0
    END AS operations
FROM operation_id AS s
CROSS JOIN cell_identity AS i
