-- Find the messages behind which queues of ordered groups wait, the longest wait first: messages that are held for at
-- least min_seconds more and have parked messages behind them. A held message without a sharding key also delays the
-- entries that the group was not handed yet.
SELECT
    h.group_id, t.name AS topic, h.queue_id, h.queue_offset, h.sharding_key, m.message_id, h.reconsume_times,
    h.expires_at AS until
FROM (
    SELECT r.*
    FROM receipt AS r
    WHERE
        r.group_id = any(%(group_ids)s::integer []) AND r.state IN ('held', 'parked') AND r.state = 'held'
        AND r.expires_at > now() + make_interval(secs => %(min_seconds)s)
        AND (
            EXISTS (
                SELECT
                FROM receipt AS p
                WHERE
                    p.group_id = r.group_id AND p.topic_id = r.topic_id AND p.queue_id = r.queue_id
                    AND p.state IN ('held', 'parked') AND p.sharding_key = r.sharding_key
                    AND p.queue_offset > r.queue_offset
            )
            OR (
                r.sharding_key = ''
                AND (
                    SELECT c.queue_offset
                    FROM consume_queue AS c
                    WHERE c.topic_id = r.topic_id AND c.queue_id = r.queue_id
                    ORDER BY c.queue_offset DESC
                    LIMIT 1
                ) >= (
                    SELECT p.next_offset
                    FROM progress AS p
                    WHERE p.reader_id = r.group_id AND p.topic_id = r.topic_id AND p.queue_id = r.queue_id
                    ORDER BY p.move DESC
                    LIMIT 1
                )
            )
        )
    ORDER BY r.expires_at DESC
    LIMIT %(max_queues)s
) AS h
INNER JOIN topic AS t ON h.topic_id = t.id
CROSS JOIN LATERAL (
    SELECT c.message_id
    FROM commit_log AS c
    WHERE c.segment_id = h.log_segment AND c.log_offset = h.log_offset
    LIMIT 1
) AS m
ORDER BY h.expires_at DESC
