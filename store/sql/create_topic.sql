-- Create a topic, or grow it to `queues` queues; it never shrinks. A topic of the broker's own gets the permission `r`,
-- even if it exists with another permission. A new topic gets the cell and the home of the topic `beside`, or else lies
-- in the open cell. Two processes may do this at the same time.
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
