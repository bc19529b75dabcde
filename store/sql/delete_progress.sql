-- Delete progress of readers that are deleted, so many rows at most: no consumer reads their positions any more. Rows
-- are found by ctid, which is unique within a partition only: a row of another partition with the same ctid is deleted
-- too if it is theirs.
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
