-- Point receipts at the new offsets of their messages. The caller has locked the rows, and appended the messages in the same
-- transaction.
WITH found AS (
    SELECT m.log_offset, f.tid
    FROM unnest(
        %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
        %(log_offset)b::bigint []
    ) AS m (group_id, topic_id, queue_id, queue_offset, log_offset)
    CROSS JOIN LATERAL (
        SELECT r.ctid AS tid
        FROM receipt AS r
        WHERE
            r.group_id = m.group_id AND r.topic_id = m.topic_id AND r.queue_id = m.queue_id
            AND r.queue_offset = m.queue_offset
        LIMIT 1
    ) AS f
)

UPDATE receipt AS r
SET log_segment = %(segment_id)s, log_offset = found.log_offset
FROM found
WHERE r.ctid = found.tid
