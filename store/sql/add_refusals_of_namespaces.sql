-- Add the requests that a process refused since it last did so to the rows of their namespaces, as add_refusals does to
-- those of keys.
WITH counted AS (
    SELECT n.id, r.refused
    FROM unnest(%(id)s::bigint [], %(refused)s::bigint []) AS r (id, refused)
    INNER JOIN namespace AS n ON r.id = n.id
    ORDER BY n.id
    FOR NO KEY UPDATE OF n
)

UPDATE namespace AS n
SET refused = n.refused + counted.refused, refused_at = now()
FROM counted
WHERE n.id = counted.id
