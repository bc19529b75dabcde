-- Find the name of a producer group by its id.
SELECT name
FROM producer_group
WHERE id = %(id)s
