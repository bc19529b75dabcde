-- Delete what is recorded of readers that are gone, some so many rows at most: nobody asks for their positions any more. Rows
-- are found by their place, which is their partition's own: one of another partition that has the same is theirs, too.
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
