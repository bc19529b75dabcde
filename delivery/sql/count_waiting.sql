-- Count by queue the entries that groups have read ahead or parked, and find when the first one became visible. One
-- pass over the rows of each group: a fair group has a thousand rows for a hundred thousand entries of a few keys. An
-- ordered group has a row for each entry, found by the index of held and parked receipts.
SELECT
    w.group_id, w.queue_topic_id AS topic_id, w.queue_id, w.waiting,
    (
        SELECT c.entered_at
        FROM consume_queue AS c
        WHERE c.topic_id = w.queue_topic_id AND c.queue_id = w.queue_id AND c.queue_offset >= w.next_offset
        ORDER BY c.queue_offset
        LIMIT 1
    ) AS oldest_at
FROM (
    SELECT
        r.group_id, r.queue_topic_id, r.queue_id, sum(cardinality(r.offsets) - r.taken)::bigint AS waiting,
        min(r.offsets[r.taken + 1]) AS next_offset
    FROM waiting AS r
    WHERE r.group_id = any(%(group_ids)s::integer [])
    GROUP BY r.group_id, r.queue_topic_id, r.queue_id
    UNION ALL
    SELECT p.group_id, p.topic_id, p.queue_id, count(*), min(p.queue_offset)
    FROM receipt AS p
    WHERE p.group_id = any(%(group_ids)s::integer []) AND p.state IN ('held', 'parked') AND p.state = 'parked'
    GROUP BY p.group_id, p.topic_id, p.queue_id
) AS w
