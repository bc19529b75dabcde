-- Point timers at the new log offsets of their messages. The caller has locked the timers and reappended the messages
-- in the same transaction.
UPDATE timer AS t
SET log_segment = %(segment_id)s, log_offset = m.log_offset
FROM unnest(%(id)b::uuid [], %(log_offset)b::bigint []) AS m (id, log_offset)
WHERE t.id = m.id AND t.id = any(%(id)b::uuid [])
