-- Find the names of producer groups by their ids. The group of a discarded message may have been deleted, and is then
-- missing.
SELECT
    id,
    name
FROM producer_group
WHERE id = any(%(ids)s::integer [])
