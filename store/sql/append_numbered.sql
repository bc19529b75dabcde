-- Append messages to the open segment, at the log offsets that the statement before has taken (register `mq.appended`,
-- by number). Messages without a log offset are left out. Safe because the statement before looked for the segment and
-- the ids under the lock of the log. If another process has stored one of the ids meanwhile, the statement fails, and
-- the batch is sent again. Columns are arrays that are read by number, as in `begin_halves`. They have one element for
-- each operation of a batch, so finding an element is fast.
INSERT INTO commit_log (
    segment_id, log_offset, stored_at, born_at, topic_id, queue_id, message_id, transaction_id, producer_group_id,
    tags, keys, sharding_key, traceparent, properties, body, body_form
)
SELECT
    %(segment_id)b::integer, a.log_offset, now(), (%(born_at)b::timestamptz [])[a.number],
    (%(topic_id)b::integer [])[a.number], (%(queue_id)b::integer [])[a.number], (%(message_id)b::uuid [])[a.number],
    (%(transaction_id)b::uuid [])[a.number], (%(producer_group_id)b::integer [])[a.number],
    (%(tags)b::text [])[a.number], string_to_array((%(keys)b::text [])[a.number], ' '),
    (%(sharding_key)b::text [])[a.number], (%(traceparent)b::text [])[a.number], (%(properties)b::bytea [])[a.number],
    (%(body)b::bytea [])[a.number], coalesce((%(body_form)b::text [])[a.number], 'text')
FROM unnest(nullif(current_setting('mq.appended', true), '')::bigint []) WITH ORDINALITY AS a (log_offset, number)
WHERE a.log_offset IS NOT NULL
