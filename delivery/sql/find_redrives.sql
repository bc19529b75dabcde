-- Find when dead letters of groups were redriven, by the letters' own offsets.
SELECT g.name AS group_name, r.queue_offset, r.redriven_at
FROM unnest(%(group_name)s::text [], %(queue_offset)s::bigint []) AS letter (group_name, queue_offset)
INNER JOIN consumer_group AS g ON letter.group_name = g.name
INNER JOIN redrive AS r ON g.id = r.group_id AND letter.queue_offset = r.queue_offset
