-- Add timers, in the transaction that stores or commits their messages: each message gets one.
INSERT INTO timer (
    id, due_at, message_id, log_segment, log_offset, topic_id, queue_id, tags_code, reconsume_times
)
SELECT t.*
FROM unnest(
    %(id)b::uuid [], %(due_at)b::timestamptz [], %(message_id)b::uuid [], %(log_segment)b::integer [],
    %(log_offset)b::bigint [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(tags_code)b::bigint [],
    %(reconsume_times)b::smallint []
) AS t (id, due_at, message_id, log_segment, log_offset, topic_id, queue_id, tags_code, reconsume_times)
