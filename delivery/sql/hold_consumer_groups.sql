-- Read groups as they are now, and lock them: an update that pauses one of them or changes its order waits for the end of the
-- transaction. So what is handed out was handed out before a pause was answered, and no message is held in order for a
-- group that is ordered no more, nor waits for its turn in one that is fair no more. Rows are locked in id order.
SELECT g.id, g.paused, g.ordered, g.fair_by
FROM consumer_group AS g
WHERE g.id = any(%(ids)s::integer [])
ORDER BY g.id
FOR SHARE
