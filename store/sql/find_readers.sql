-- Find the readers that have progress, without the scheduler. A loose index scan goes from reader to reader along the
-- key.
WITH RECURSIVE readers AS (
    (SELECT p.reader_id FROM progress AS p WHERE p.reader_id > 0 ORDER BY p.reader_id LIMIT 1)
    UNION ALL
    SELECT (SELECT p.reader_id FROM progress AS p WHERE p.reader_id > r.reader_id ORDER BY p.reader_id LIMIT 1)
    FROM readers AS r
    WHERE r.reader_id IS NOT NULL
)

SELECT reader_id FROM readers WHERE reader_id IS NOT NULL
