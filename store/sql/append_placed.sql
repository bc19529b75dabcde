-- Append messages to the open segment, at the log offsets that the statement before took for them (register `mq.appended`, by
-- place); those without one are left out. Safe because that statement looked for the segment and the ids under the lock of
-- the log. An id that another process stored meanwhile fails the statement, and the batch is sent again. The columns are read
-- by place as in `begin_halves`: they have as many rows as a batch has operations, so that no walk to a place is long.
INSERT INTO commit_log (
    segment_id, log_offset, stored_at, born_at, topic_id, queue_id, message_id, transaction_id, producer_group_id,
    tags, keys, sharding_key, traceparent, properties, body, body_form
)
SELECT
    %(segment_id)b::integer, a.log_offset, now(), (%(born_at)b::timestamptz [])[a.place],
    (%(topic_id)b::integer [])[a.place], (%(queue_id)b::integer [])[a.place], (%(message_id)b::uuid [])[a.place],
    (%(transaction_id)b::uuid [])[a.place], (%(producer_group_id)b::integer [])[a.place],
    (%(tags)b::text [])[a.place], string_to_array((%(keys)b::text [])[a.place], ' '),
    (%(sharding_key)b::text [])[a.place], (%(traceparent)b::text [])[a.place], (%(properties)b::bytea [])[a.place],
    (%(body)b::bytea [])[a.place], coalesce((%(body_form)b::text [])[a.place], 'text')
FROM unnest(nullif(current_setting('mq.appended', true), '')::bigint []) WITH ORDINALITY AS a (log_offset, place)
WHERE a.log_offset IS NOT NULL
