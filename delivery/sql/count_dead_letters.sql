-- Count each consumer group's dead letters that were not redriven, the group with the most first. Offsets have no gaps,
-- so the number of kept letters is a difference of two probes; redriven letters are counted by their key and
-- subtracted. Counts only groups whose names begin with one of `starts`; all names begin with the empty text.
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
