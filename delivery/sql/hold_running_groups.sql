-- Find the groups that are not paused, and lock them: an update that pauses one of them waits for the end of the transaction.
-- So what is handed out was handed out before the pause was answered. Rows are locked in id order.
SELECT g.id
FROM consumer_group AS g
WHERE g.id = any(%(ids)s::integer []) AND NOT g.paused
ORDER BY g.id
FOR SHARE
