-- Count a group's dead letters below an offset that were not redriven, up to a limit: reads that many entries at most.
SELECT count(*)::integer AS letters
FROM (
    SELECT
    FROM consume_queue AS e
    WHERE
        e.topic_id = %(topic_id)s AND e.queue_id = 0 AND e.queue_offset < %(until_offset)s
        AND NOT EXISTS (
            SELECT 1 FROM redrive AS r WHERE r.group_id = %(group_id)s AND r.queue_offset = e.queue_offset
        )
    LIMIT %(max_count)s
) AS found
