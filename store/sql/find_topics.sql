-- Find topics by their ids, with the version of the map from topics to cells.
SELECT t.id, t.name, t.queues, t.permission, t.cell_id, m.version, t.sends_from
FROM topic AS t
CROSS JOIN cell_map AS m
WHERE t.id = any(%(ids)s::integer [])
