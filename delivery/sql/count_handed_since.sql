-- Count the entries that each group was handed since a time, in the last max_moves moves of each of its queues: for a
-- busy group the count is a lower bound. The moves of a queue are read backwards by the key of progress.
SELECT g.group_id, sum(h.handed)::bigint AS handed
FROM unnest(%(group_id)s::integer [], %(since)s::timestamptz []) AS g (group_id, since)
INNER JOIN unnest(
    %(queue_group_id)s::integer [], %(topic_id)s::integer [], %(queue_id)s::integer []
) AS q (group_id, topic_id, queue_id) ON g.group_id = q.group_id
CROSS JOIN LATERAL (
    SELECT
        coalesce(
            max(m.next_offset) - coalesce(max(m.next_offset) FILTER (WHERE m.moved_at < g.since), min(m.next_offset)), 0
        ) AS handed
    FROM (
        SELECT p.next_offset, p.moved_at
        FROM progress AS p
        WHERE p.reader_id = q.group_id AND p.topic_id = q.topic_id AND p.queue_id = q.queue_id
        ORDER BY p.move DESC
        LIMIT %(max_moves)s
    ) AS m
) AS h
GROUP BY g.group_id
