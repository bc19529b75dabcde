-- Delete what is recorded of readers that are gone, so many rows at most: nobody asks for their positions any more.
DELETE FROM progress AS p
USING (
    SELECT g.segment_id, g.reader_id, g.topic_id, g.queue_id, g.move
    FROM progress AS g
    WHERE g.reader_id = any(%(reader_ids)s::integer [])
    LIMIT %(max_rows)s
) AS gone
WHERE
    p.reader_id = gone.reader_id AND p.topic_id = gone.topic_id AND p.queue_id = gone.queue_id AND p.move = gone.move
    AND p.segment_id = gone.segment_id
RETURNING p.reader_id
