-- Have deliveries in flight say where their messages lie now. The caller has locked them, and appended the messages in the
-- same transaction.
UPDATE receipt AS r
SET log_segment = %(segment_id)s, log_offset = m.log_offset
FROM unnest(
    %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
    %(log_offset)b::bigint []
) AS m (group_id, topic_id, queue_id, queue_offset, log_offset)
WHERE
    r.group_id = m.group_id AND r.topic_id = m.topic_id AND r.queue_id = m.queue_id
    AND r.queue_offset = m.queue_offset
