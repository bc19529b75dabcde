-- Read the held and parked receipts of an ordered group in a queue that follow the first receipt of some keys, at most
-- max_receipts of each key. The caller holds the lock of the group's progress.
SELECT
    r.topic_id, r.queue_id, r.queue_offset, r.state, r.expires_at > now() AS waits, r.sharding_key,
    r.log_segment AS segment_id, r.log_offset, r.tags_code, r.reconsume_times
FROM unnest(%(sharding_key)s::text [], %(after_offset)s::bigint []) AS k (sharding_key, after_offset)
CROSS JOIN LATERAL (
    SELECT t.*
    FROM receipt AS t
    WHERE
        t.group_id = %(group_id)s AND t.topic_id = %(topic_id)s AND t.queue_id = %(queue_id)s
        AND t.state IN ('held', 'parked') AND t.sharding_key = k.sharding_key AND t.queue_offset > k.after_offset
    ORDER BY t.queue_offset
    LIMIT %(max_receipts)s
) AS r
