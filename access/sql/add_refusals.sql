-- Add the requests that a process has refused since its last report to the rows of their keys. Rows are locked in id
-- order, so that two processes do not deadlock. A key that was revoked meanwhile is skipped.
WITH counted AS (
    SELECT k.id, r.refused
    FROM unnest(%(id)s::bigint [], %(refused)s::bigint []) AS r (id, refused)
    INNER JOIN api_key AS k ON r.id = k.id
    ORDER BY k.id
    FOR NO KEY UPDATE OF k
)

UPDATE api_key AS k
SET refused = k.refused + counted.refused, refused_at = now()
FROM counted
WHERE k.id = counted.id
