-- Add timers, one for each message, in the transaction that stores or commits the messages. In a pipelined batch the
-- timers have no log offsets, and may have seconds instead of a due time: the statement before stores the messages, and
-- passes their log offsets in the register `mq.timers`, `number:log_offset,…`. A message that was left out gets no
-- timer.
INSERT INTO timer (
    id, due_at, message_id, log_segment, log_offset, topic_id, queue_id, tags_code, reconsume_times
)
SELECT
    t.id, coalesce(t.due_at, now() + make_interval(secs => t.delay_seconds)), t.message_id,
    coalesce(t.log_segment, %(segment_id)s::integer), coalesce(t.log_offset, stored.log_offset), t.topic_id, t.queue_id,
    coalesce(t.tags_code, 0), coalesce(t.reconsume_times, 0)
FROM unnest(
    %(id)b::uuid [], %(number)b::integer [], %(due_at)b::timestamptz [], %(delay_seconds)b::double precision [],
    %(message_id)b::uuid [], %(log_segment)b::integer [], %(log_offset)b::bigint [], %(topic_id)b::integer [],
    %(queue_id)b::integer [], %(tags_code)b::bigint [], %(reconsume_times)b::smallint []
) AS t (
    id, number, due_at, delay_seconds, message_id, log_segment, log_offset, topic_id, queue_id, tags_code, reconsume_times
)
LEFT JOIN (
    SELECT split_part(r.timer, ':', 1)::integer AS number, split_part(r.timer, ':', 2)::bigint AS log_offset
    FROM string_to_table(nullif(current_setting('mq.timers', true), ''), ',') AS r (timer)
) AS stored ON t.number = stored.number
WHERE coalesce(t.log_offset, stored.log_offset) IS NOT NULL
