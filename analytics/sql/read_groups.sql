-- Read the names of producer groups.
SELECT id, name
FROM producer_group
