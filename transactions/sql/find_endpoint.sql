-- Find a group's endpoint by its URL.
SELECT id
FROM endpoint
WHERE group_id = %(group_id)s AND url = %(url)s
