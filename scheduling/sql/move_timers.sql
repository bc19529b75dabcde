-- Have timers say where their messages lie now. The caller has locked them, and appended the messages in the same
-- transaction.
UPDATE timer AS t
SET log_segment = %(segment_id)s, log_offset = m.log_offset
FROM unnest(%(id)b::uuid [], %(log_offset)b::bigint []) AS m (id, log_offset)
WHERE t.id = m.id AND t.id = any(%(id)b::uuid [])
