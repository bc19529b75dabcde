-- Read the fields of entries that a filter needs, for several queues, each queue from its own offset on, in order.
-- Bodies are not read, because they may be large and a filter skips most of them. Each message is looked up by a
-- separate index probe, as in read_entries. The queues are read in the given order, until the entries that were read
-- have `max_bytes` of properties together. To add up the bytes, only the length of further properties is read, which
-- does not fetch large values.
-- Row: An entry for a filter: the message without its body. `origin_topic_id`: the topic it was sent to.
-- Null: sharding_key, tags, properties.
SELECT
    h.entry_topic_id, h.entry_queue_id, h.queue_offset, h.tags_code, h.reconsume_times,
    h.segment_id, h.log_offset, h.origin_topic_id, h.sharding_key, h.tags, h.properties, h.body_bytes
FROM (
    SELECT
        q.number, q.topic_id AS entry_topic_id, q.queue_id AS entry_queue_id, e.queue_offset, e.tags_code, e.reconsume_times,
        m.segment_id, m.log_offset, m.topic_id AS origin_topic_id, m.sharding_key, m.tags, m.properties,
        octet_length(m.body) AS body_bytes,
        sum(octet_length(m.properties)) OVER (
            ORDER BY q.number, e.queue_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS bytes_before
    FROM unnest(
        %(topic_id)s::integer [], %(queue_id)s::integer [], %(from_offset)s::bigint [], %(max_entries)s::integer []
    ) WITH ORDINALITY AS q (topic_id, queue_id, from_offset, max_entries, number)
    CROSS JOIN LATERAL (
        SELECT c.queue_offset, c.tags_code, c.reconsume_times, c.log_segment, c.log_offset
        FROM consume_queue AS c
        WHERE c.topic_id = q.topic_id AND c.queue_id = q.queue_id AND c.queue_offset >= q.from_offset
        ORDER BY c.queue_offset
        LIMIT q.max_entries
    ) AS e
    CROSS JOIN LATERAL (
        SELECT l.* FROM commit_log AS l
        WHERE l.segment_id = e.log_segment AND l.log_offset = e.log_offset
        LIMIT 1
    ) AS m
) AS h
WHERE coalesce(h.bytes_before, 0) < %(max_bytes)s::bigint
ORDER BY h.number, h.queue_offset
