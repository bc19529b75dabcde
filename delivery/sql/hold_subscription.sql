-- Find whether a subscription may be pushed, and keep it and its group so until the transaction ends: an update that pauses one
-- of them waits for that. The transaction ends as soon as the beginning of the call is written.
SELECT s.id
FROM subscription AS s
INNER JOIN consumer_group AS g ON s.group_name = g.name
WHERE s.id = %(id)s AND NOT s.paused AND NOT g.paused AND s.state <> 'disabled'
FOR SHARE OF s, g
