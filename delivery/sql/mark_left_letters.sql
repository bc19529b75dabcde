-- Mark the dead letters whose topics have left this database for another cell as redriven: the other cell has these
-- letters, so counts and lists here leave the copies out. No redrive takes a copy, and a repetition marks no letter
-- twice. The rows go into the open segment, so retention drops the letters first. Returns the number of marked letters.
WITH marked AS (
    INSERT INTO redrive (segment_id, group_id, queue_offset, redriven_at)
    SELECT (SELECT max(s.id) FROM segment AS s WHERE s.state = 'open'), d.group_id, d.queue_offset, now()
    FROM consumer_group AS g
    INNER JOIN topic AS t ON %(prefix)s || g.name = t.name
    INNER JOIN dead_letter_message AS d ON g.id = d.group_id AND t.id = d.topic_id AND d.queue_id = 0
    WHERE d.origin_topic_id = any(%(topics)s::integer [])
    ON CONFLICT DO NOTHING
    RETURNING 1
)

SELECT count(*) AS letters FROM marked
