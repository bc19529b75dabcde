-- Find topics by their names or their ids, with the version of the map from topics to cells, from the same snapshot.
SELECT t.id, t.name, t.queues, t.permission, t.cell_id, m.version, t.sends_from
FROM topic AS t
CROSS JOIN cell_map AS m
WHERE t.name = any(%(names)s::text []) OR t.id = any(%(ids)s::integer [])
