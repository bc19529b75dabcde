-- Append messages to the open segment of the commit log, in the order given. The caller has joined the writers, so the
-- segment stays open until it commits. If the segment already holds one of the ids, the whole statement fails: the
-- caller looked for the ids before, so another process has stored one in between, and the batch is repeated.
-- Row: A message that was appended to the commit log, with its log offset.
INSERT INTO commit_log (
    segment_id, log_offset, stored_at, born_at, topic_id, queue_id, message_id, transaction_id, producer_group_id,
    tags, keys, sharding_key, traceparent, properties, body, body_form
)
SELECT
    %(segment_id)s, nextval('commit_log_offset'), now(), m.born_at, m.topic_id, m.queue_id, m.message_id,
    m.transaction_id, m.producer_group_id, m.tags, string_to_array(m.keys, ' '), m.sharding_key, m.traceparent,
    m.properties, m.body, m.body_form
FROM (
    SELECT *
    FROM unnest(
        %(born_at)b::timestamptz [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(message_id)b::uuid [],
        %(transaction_id)b::uuid [], %(producer_group_id)b::integer [], %(tags)b::text [], %(keys)b::text [],
        %(sharding_key)b::text [], %(traceparent)b::text [], %(properties)b::bytea [], %(body)b::bytea [],
        %(body_form)b::text []
    ) WITH ORDINALITY AS given (
        born_at, topic_id, queue_id, message_id, transaction_id, producer_group_id, tags, keys, sharding_key,
        traceparent, properties, body, body_form, number
    )
    ORDER BY number
) AS m
RETURNING log_offset, message_id
