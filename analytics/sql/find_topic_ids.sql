-- Find the ids of topics by their names, for a stream that begins at given offsets of their queues.
-- Row: A topic's name and id.
SELECT t.name, t.id
FROM topic AS t
WHERE t.name = any(%(names)s::text [])
