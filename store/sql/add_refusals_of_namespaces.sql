-- Add to each namespace's row the number of requests that a process has refused since its last call. `add_refusals`
-- does the same for keys.
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
