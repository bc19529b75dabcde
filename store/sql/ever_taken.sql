-- Count the numbers that this cell has ever taken from a sequence (log offsets, ids of operations), including numbers
-- of failed writes and of dropped segments. A cell that was split off counts from its own first number.
SELECT
    coalesce(s.last_value + 1 - coalesce((i.first_numbers ->> s.sequencename::text)::bigint, s.start_value), 0) AS taken
FROM pg_sequences AS s
CROSS JOIN cell_identity AS i
WHERE s.schemaname = current_schema() AND s.sequencename = %(sequence)s
