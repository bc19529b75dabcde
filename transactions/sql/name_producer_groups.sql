-- Find the names of producer groups by their ids. The group of a discarded message may have been deleted, and is then
-- missing.
-- Row: A producer group's id and its name.
SELECT
    id,
    name
FROM producer_group
WHERE id = any(%(ids)s::integer [])
