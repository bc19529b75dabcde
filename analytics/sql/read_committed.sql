-- The messages as they became visible, each once, for the data source: the entries in the topics to which messages were
-- sent, in the closed ranges that each slice adds. Entries of delay levels, retries and dead letters are left out,
-- because they lie in other topics. A dead letter that was redriven to its original topic is left out, too: only for
-- topics with redriven messages are the other entries of a message looked up. A message with a delay level has its due
-- time in the level's entry: an entry that was made within one second after the message was stored had no level,
-- because the shortest level is one second. The first columns of the log have other names here, because an entry has
-- columns of the same names.
SELECT
    l.*, c.segment_id, c.segment_id AS segment, c.topic_id, t.name AS topic, c.queue_id, c.queue_offset, c.entered_at,
    CASE WHEN strpos(t.name, chr(37)) > 1 THEN split_part(t.name, chr(37), 1) END AS namespace,
    CASE WHEN l.transaction_id IS NOT NULL THEN 'COMMITTED' END AS state,
    coalesce(
        c.due_at,
        CASE
            WHEN c.entered_at >= l.stored_at + interval '1 second'
                THEN (
                    SELECT timestamptz 'epoch' + min(s.tags_code) * interval '1 millisecond'
                    FROM consume_queue AS s
                    WHERE s.log_offset = c.log_offset AND s.real_topic_id = c.topic_id
                )
        END
    ) AS due_at,
    g.name AS producer_group, octet_length(l.body) AS body_bytes
FROM consume_queue AS c
CROSS JOIN LATERAL (
    SELECT m.*
    FROM commit_log AS m (log_segment, log_offset, stored_at, born_at, log_topic_id, log_queue_id)
    WHERE m.log_segment = c.log_segment AND m.log_offset = c.log_offset
    LIMIT 1
) AS l
LEFT JOIN topic AS t ON c.topic_id = t.id
LEFT JOIN producer_group AS g ON l.producer_group_id = g.id
WHERE
    l.log_topic_id = c.topic_id
    AND NOT (
        EXISTS (SELECT FROM redrive)
        AND EXISTS (
            SELECT
            FROM commit_log AS f
            INNER JOIN consume_queue AS e ON f.log_offset = e.log_offset
            WHERE f.message_id = l.message_id AND e.topic_id = c.topic_id AND e.entered_at < c.entered_at
        )
    )
