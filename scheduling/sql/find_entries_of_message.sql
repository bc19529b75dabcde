-- Find every entry of a message at any of its log offsets, the newest first. Two columns show whether an entry of a
-- delay level's queue still waits there, and whether it was recalled. One statement, one snapshot: an entry that
-- neither waits nor was recalled has its next entry among the rows.
-- Row: An entry of a message. An entry of a delay level's queue has a real topic and queue, and waits until its
--    release. `due_at` is the due time of the timer whose release made the entry.
-- Null: real_topic_id, real_queue_id, due_at.
SELECT
    c.topic_id, c.queue_id, c.queue_offset, c.reconsume_times, c.entered_at, c.real_topic_id, c.real_queue_id,
    c.tags_code AS due_ms, c.due_at,
    c.queue_offset >= coalesce(scheduler.next_offset, 0) AS waits,
    EXISTS (
        SELECT 1
        FROM recall AS r
        WHERE r.queue_id = c.queue_id AND r.queue_offset = c.queue_offset
    ) AS recalled
FROM consume_queue AS c
LEFT JOIN LATERAL (
    SELECT p.next_offset
    FROM progress AS p
    WHERE
        c.real_topic_id IS NOT NULL AND p.reader_id = %(scheduler)s AND p.topic_id = c.topic_id
        AND p.queue_id = c.queue_id
    ORDER BY p.move DESC
    LIMIT 1
) AS scheduler ON true
WHERE c.log_offset = any(%(log_offsets)s::bigint [])
ORDER BY c.entered_at DESC, c.topic_id, c.queue_id, c.queue_offset DESC
LIMIT %(max_entries)s
