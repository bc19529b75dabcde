-- Read groups as they are now, and lock them: an update that pauses a group or changes its order waits for the end of
-- this transaction. So no message is handed out after a pause was answered, and no message is held for a group that is
-- no longer ordered, or waits for a turn in a group that is no longer fair, or
-- is handed out above a limit. Rows are locked in id order.
SELECT g.id, g.paused, g.ordered, g.fair_by, g.limits
FROM consumer_group AS g
WHERE g.id = any(%(ids)s::integer [])
ORDER BY g.id
FOR SHARE
