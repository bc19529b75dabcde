-- The entries for the export, which adds the closed ranges of each slice. An entry in a delay level's queue gets the
-- topic for which it is delayed, and its due time, which is its tags code in ms. The attempts that an entry of
-- discarded messages counts are checks, not retries, and are left out. An entry that a timer's release made has the
-- timer's due time. The namespace stands before the first % of a topic's name; in the name of a retry or dead letter
-- topic, between the first and the second %.
SELECT
    c.segment_id, c.segment_id AS segment, c.topic_id, t.name AS topic,
    CASE
        WHEN strpos(t.name, chr(37)) > 1 THEN split_part(t.name, chr(37), 1)
        WHEN split_part(t.name, chr(37), 4) <> '' THEN split_part(t.name, chr(37), 3)
    END AS namespace, c.queue_id, c.queue_offset, c.log_segment, c.log_offset, c.tags_code,
    CASE WHEN t.name = 'TRANS_CHECK_MAX_TIME_TOPIC' THEN 0::smallint ELSE c.reconsume_times END AS reconsume_times, c.entered_at, r.name AS real_topic, c.real_queue_id, c.due_at,
    CASE
        WHEN c.real_topic_id IS NOT NULL THEN timestamptz 'epoch' + c.tags_code * interval '1 millisecond'
    END AS deliver_at,
    (
        c.entered_at < (SELECT (i.first_numbers ->> 'noted_at')::timestamptz FROM cell_identity AS i)
    ) IS TRUE AS copied
FROM consume_queue AS c
LEFT JOIN topic AS t ON c.topic_id = t.id
LEFT JOIN topic AS r ON c.real_topic_id = r.id
