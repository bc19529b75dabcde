-- Delete the receipts of ordered groups whose messages become dead letters. The caller has locked the rows.
WITH found AS (
    SELECT f.tid
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint []
    ) AS h (group_id, topic_id, queue_id, queue_offset)
    CROSS JOIN LATERAL (
        SELECT r.ctid AS tid
        FROM receipt AS r
        WHERE
            r.group_id = h.group_id AND r.topic_id = h.topic_id AND r.queue_id = h.queue_id
            AND r.queue_offset = h.queue_offset
        LIMIT 1
    ) AS f
)

DELETE FROM receipt AS r
USING found
WHERE r.ctid = found.tid
