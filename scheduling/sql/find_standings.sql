-- Find the standing of delayed messages, at any of their log offsets: visible at a queue offset, or waiting in a timer
-- or a level's queue until a due time. One statement has one snapshot, and the release makes an entry visible in the
-- transaction that ends the wait: so a message that is neither visible nor waiting, while its newest segment is kept,
-- was recalled.
-- Row: The standing of a delayed message: visible in a queue, waiting in a timer or level's queue, or neither (None).
-- Null: visible, timer_id, due_at, queue_id, queue_offset.
WITH appended AS MATERIALIZED (
    SELECT m.message_id, m.segment_id, m.log_offset, m.topic_id
    FROM commit_log AS m
    WHERE m.message_id = any(%(message_ids)s::uuid [])
),

stored AS (
    SELECT
        p.message_id, min(p.topic_id) AS topic_id, array_agg(p.log_offset) AS log_offsets,
        to_regclass('consume_queue_' || max(p.segment_id)) IS NOT NULL AS kept
    FROM appended AS p
    GROUP BY p.message_id
)

SELECT s.message_id, s.kept, w.visible, w.timer_id, w.due_at, w.queue_id, w.queue_offset
FROM stored AS s
LEFT JOIN LATERAL (
    SELECT true AS visible, NULL::uuid AS timer_id, NULL::timestamptz AS due_at, c.queue_id, c.queue_offset
    FROM consume_queue AS c
    WHERE c.log_offset = any(s.log_offsets) AND c.topic_id = s.topic_id AND c.reconsume_times = 0
    UNION ALL
    SELECT false, t.id, t.due_at, NULL, NULL
    FROM timer AS t
    WHERE t.log_offset = any(s.log_offsets) AND t.message_id = s.message_id
    UNION ALL
    SELECT false, NULL, to_timestamp(c.tags_code / 1000.0), c.queue_id, c.queue_offset
    FROM consume_queue AS c
    LEFT JOIN LATERAL (
        SELECT p.next_offset
        FROM progress AS p
        WHERE p.reader_id = %(scheduler)s AND p.topic_id = c.topic_id AND p.queue_id = c.queue_id
        ORDER BY p.move DESC
        LIMIT 1
    ) AS scheduler ON true
    WHERE
        c.log_offset = any(s.log_offsets) AND c.real_topic_id IS NOT NULL AND c.reconsume_times = 0
        AND c.queue_offset >= coalesce(scheduler.next_offset, 0)
        AND NOT EXISTS (
            SELECT 1
            FROM recall AS r
            WHERE r.queue_id = c.queue_id AND r.queue_offset = c.queue_offset
        )
    ORDER BY visible DESC, queue_offset
    LIMIT 1
) AS w ON true
