-- Note the first number of each sequence that this database itself takes, and the time. Called during a fence. Rows with
-- lower numbers, and entries and checks of an earlier time, are copies of rows that another cell counts.
UPDATE cell_identity
SET
    first_numbers = (
        SELECT jsonb_object_agg(s.sequencename, s.last_value + 1) || jsonb_build_object('noted_at', now())
        FROM pg_sequences AS s
        WHERE s.schemaname = current_schema() AND s.last_value IS NOT NULL
    )
