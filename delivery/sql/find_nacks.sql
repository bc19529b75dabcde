-- Find the nacks of a message that have a reason, the latest first, by the index of nacks: at each log position at
-- which the message was stored. The log positions are found first, because a join in the order of log offsets would
-- read the log.
WITH copy AS MATERIALIZED (SELECT m.log_offset FROM commit_log AS m WHERE m.message_id = %(message_id)s)

SELECT g.name AS group_name, k.nacked_at, k.reconsume_times, k.reason
FROM copy AS m
INNER JOIN nack AS k ON m.log_offset = k.log_offset
INNER JOIN consumer_group AS g ON k.group_id = g.id
ORDER BY k.nacked_at DESC
LIMIT %(max_nacks)s
