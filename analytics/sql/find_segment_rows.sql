-- Find whether a segment holds any row of each table: a reader that has found no row learns here whether retention has
-- dropped the segment.
-- Row: Whether a segment holds any row of each table.
SELECT
    EXISTS (SELECT FROM commit_log AS l WHERE l.segment_id = %(segment_id)s) AS messages,
    EXISTS (SELECT FROM consume_queue AS c WHERE c.segment_id = %(segment_id)s) AS entries,
    EXISTS (SELECT FROM operation AS o WHERE o.segment_id = %(segment_id)s) AS operations
