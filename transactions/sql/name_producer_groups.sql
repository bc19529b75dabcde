-- Name producer groups by their ids: one of a discarded message may have been deleted since, and is missing then.
SELECT
    id,
    name
FROM producer_group
WHERE id = any(%(ids)s::integer [])
