-- Append stored messages again to the open segment, in their order, up to `max_bytes` and at least one. The caller has
-- joined the writers, so the segment stays open. A message that is already in the open segment, because another row
-- also needs it, is left out: each id is in a segment at most once.
INSERT INTO commit_log (
    segment_id, log_offset, stored_at, born_at, topic_id, queue_id, message_id, transaction_id, producer_group_id,
    tags, keys, sharding_key, traceparent, properties, body, body_form
)
SELECT
    %(segment_id)s, nextval('commit_log_offset'), m.stored_at, m.born_at, m.topic_id, m.queue_id, m.message_id,
    m.transaction_id, m.producer_group_id, m.tags, m.keys, m.sharding_key, m.traceparent, m.properties, m.body,
    m.body_form
FROM (
    SELECT
        old.*,
        sum(octet_length(old.body)) OVER (ORDER BY old.log_offset) - octet_length(old.body) AS bytes_before
    FROM (
        SELECT DISTINCT a.log_segment, a.log_offset
        FROM unnest(%(log_segment)b::integer [], %(log_offset)b::bigint []) AS a (log_segment, log_offset)
    ) AS asked
    CROSS JOIN LATERAL (
        SELECT l.* FROM commit_log AS l
        WHERE l.segment_id = asked.log_segment AND l.log_offset = asked.log_offset
        LIMIT 1
    ) AS old
    ORDER BY old.log_offset
) AS m
WHERE m.bytes_before < %(max_bytes)s
ON CONFLICT (message_id, segment_id) DO NOTHING
