-- Create a topic, or let it grow to so many queues; it never shrinks. One of the broker's own, which is given `r`, also gets
-- that where it has another permission. A new one lies in the cell and has the home of the topic `beside`, or lies in the
-- open cell. Two processes may do the same at once.
INSERT INTO topic (name, queues, permission, cell_id, home)
SELECT
    %(name)s, %(queues)s, %(permission)s,
    coalesce(beside.cell_id, (SELECT c.id FROM cell AS c WHERE c.takes_topics), 0), coalesce(beside.home, '')
FROM (SELECT %(beside)s::text AS name) AS wanted
LEFT JOIN topic AS beside ON beside.name = wanted.name
ON CONFLICT (name) DO UPDATE
SET
    queues = greatest(topic.queues, excluded.queues),
    permission = CASE WHEN excluded.permission = 'r' THEN 'r' ELSE topic.permission END
WHERE topic.queues < excluded.queues OR (excluded.permission = 'r' AND topic.permission <> 'r')
