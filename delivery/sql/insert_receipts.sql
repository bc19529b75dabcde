-- Hide handed out messages until they are acked or their invisible time is over by the database's clock; park others.
INSERT INTO receipt (
    group_id, topic_id, queue_id, queue_offset, nonce, expires_at, received_at, log_segment, log_offset, tags_code,
    reconsume_times, origin_topic_id, state, sharding_key
)
SELECT
    r.group_id, r.topic_id, r.queue_id, r.queue_offset, r.nonce, now() + make_interval(secs => r.invisible_seconds),
    now(), r.log_segment, r.log_offset, r.tags_code, r.reconsume_times, r.origin_topic_id, r.state,
    r.sharding_key
FROM unnest(
    %(group_id)b::integer [], %(topic_id)b::integer [], %(queue_id)b::integer [], %(queue_offset)b::bigint [],
    %(nonce)b::bigint [], %(invisible_seconds)b::double precision [], %(log_segment)b::integer [],
    %(log_offset)b::bigint [], %(tags_code)b::bigint [], %(reconsume_times)b::smallint [],
    %(origin_topic_id)b::integer [], %(state)b::text [], %(sharding_key)b::text []
) AS r (
    group_id, topic_id, queue_id, queue_offset, nonce, invisible_seconds, log_segment, log_offset, tags_code,
    reconsume_times, origin_topic_id, state, sharding_key
)
