-- Delete progress of deleted readers, at most `max_rows` rows: no consumer reads their positions any more. Rows are
-- found by ctid, which is unique within a partition only: a row of another partition with the same ctid is also deleted
-- if it belongs to one of these readers.
DELETE FROM progress AS p
WHERE
    p.reader_id = any(%(reader_ids)s::integer [])
    AND p.ctid = any(array(
        SELECT g.ctid
        FROM progress AS g
        WHERE g.reader_id = any(%(reader_ids)s::integer [])
        LIMIT %(max_rows)s
    ))
RETURNING p.reader_id
