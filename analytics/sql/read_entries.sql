-- The entries for the export, which adds the closed ranges of each slice. In a delay level's queue an entry has its real
-- topic, and its due time from its tags code, which is in ms. What an entry of discarded messages counts are no retries. An entry that a timer's release made has the timer's. The
-- namespace stands before the first % of a topic's name, and of one of retries or dead letters behind the second.
SELECT
    c.segment_id, c.segment_id AS segment, c.topic_id, t.name AS topic,
    CASE
        WHEN strpos(t.name, chr(37)) > 1 THEN split_part(t.name, chr(37), 1)
        WHEN split_part(t.name, chr(37), 4) <> '' THEN split_part(t.name, chr(37), 3)
    END AS namespace, c.queue_id, c.queue_offset, c.log_segment, c.log_offset, c.tags_code,
    CASE WHEN t.name = 'TRANS_CHECK_MAX_TIME_TOPIC' THEN 0::smallint ELSE c.reconsume_times END AS reconsume_times, c.entered_at, r.name AS real_topic, c.real_queue_id, c.due_at,
    CASE
        WHEN c.real_topic_id IS NOT NULL THEN timestamptz 'epoch' + c.tags_code * interval '1 millisecond'
    END AS deliver_at
FROM consume_queue AS c
LEFT JOIN topic AS t ON c.topic_id = t.id
LEFT JOIN topic AS r ON c.real_topic_id = r.id
