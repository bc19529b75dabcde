-- The timers for the export: messages and retries that become visible at a time and not at a delay level. A released
-- timer is deleted.
SELECT
    m.message_id, t.name AS topic, t.id AS topic_id, m.queue_id, m.due_at, m.log_segment, m.log_offset, m.reconsume_times
FROM timer AS m
LEFT JOIN topic AS t ON m.topic_id = t.id
