-- Find whether a subscription may be pushed, and lock it and its group: an update that pauses one of the two waits for
-- the end of this transaction, which ends as soon as the first bytes of the call are written.
SELECT s.id
FROM subscription AS s
INNER JOIN consumer_group AS g ON s.group_name = g.name
WHERE s.id = %(id)s AND NOT s.paused AND NOT g.paused AND s.state <> 'disabled'
FOR SHARE OF s, g
