-- Count a group's dead letters below an offset that were not redriven, up to max_count, so no more entries are read.
SELECT count(*)::integer AS letters
FROM (
    SELECT
    FROM dead_letter AS d
    WHERE d.group_id = %(group_id)s AND d.topic_id = %(topic_id)s AND d.queue_id = 0 AND d.queue_offset < %(until_offset)s
    LIMIT %(max_count)s
) AS found
