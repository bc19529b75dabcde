-- Copy the newest move of each position from a segment that is dropped to the open segment, unless a later segment has
-- a newer move. The caller has joined the writers, so the open segment stays open. Readers may move meanwhile, because
-- the highest move counts, whatever its segment. The index is probed once for each position, however many moves it has:
-- each step looks for the newest move of the next position.
WITH RECURSIVE newest AS (
    (
        SELECT p.reader_id, p.topic_id, p.queue_id, p.move, p.next_offset, p.moved_at
        FROM progress AS p
        WHERE p.segment_id = %(from_segment_id)s
        ORDER BY p.reader_id DESC, p.topic_id DESC, p.queue_id DESC, p.move DESC
        LIMIT 1
    )
    UNION ALL
    SELECT before.reader_id, before.topic_id, before.queue_id, before.move, before.next_offset, before.moved_at
    FROM newest AS n
    CROSS JOIN LATERAL (
        SELECT p.reader_id, p.topic_id, p.queue_id, p.move, p.next_offset, p.moved_at
        FROM progress AS p
        WHERE
            p.segment_id = %(from_segment_id)s
            AND (p.reader_id, p.topic_id, p.queue_id) < (n.reader_id, n.topic_id, n.queue_id)
        ORDER BY p.reader_id DESC, p.topic_id DESC, p.queue_id DESC, p.move DESC
        LIMIT 1
    ) AS before
)

INSERT INTO progress (segment_id, reader_id, topic_id, queue_id, move, next_offset, moved_at)
SELECT %(segment_id)s, n.reader_id, n.topic_id, n.queue_id, n.move, n.next_offset, n.moved_at
FROM newest AS n
WHERE NOT EXISTS (
    SELECT 1
    FROM progress AS later
    WHERE
        later.segment_id > %(from_segment_id)s AND later.reader_id = n.reader_id AND later.topic_id = n.topic_id
        AND later.queue_id = n.queue_id
)
ON CONFLICT DO NOTHING
