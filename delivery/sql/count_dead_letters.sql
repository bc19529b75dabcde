-- Count each consumer group's dead letters that were not redriven, the most first. Offsets are dense, so the letters kept are
-- a difference of two probes; the redriven ones among them are counted by their key. Of groups whose
-- names begin with one of `starts`; all begin with the empty one.
SELECT
    g.name AS group_name, newest.queue_offset + 1 - coalesce(f.min_offset, 0) - sent.letters AS letters,
    newest.entered_at AS last_dead_at
FROM consumer_group AS g
INNER JOIN topic AS t ON %(prefix)s || g.name = t.name
LEFT JOIN queue_floor AS f ON t.id = f.topic_id AND f.queue_id = 0
CROSS JOIN LATERAL (
    SELECT c.queue_offset, c.entered_at
    FROM consume_queue AS c
    WHERE c.topic_id = t.id AND c.queue_id = 0
    ORDER BY c.queue_offset DESC
    LIMIT 1
) AS newest
CROSS JOIN LATERAL (
    SELECT count(*) AS letters
    FROM redrive AS r
    WHERE r.group_id = g.id AND r.queue_offset >= coalesce(f.min_offset, 0)
) AS sent
WHERE newest.queue_offset + 1 - coalesce(f.min_offset, 0) > sent.letters AND g.name ^@ any(%(starts)s::text [])
ORDER BY letters DESC, g.name
LIMIT %(max_groups)s
