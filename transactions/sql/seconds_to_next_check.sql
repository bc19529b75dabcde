-- Find how long it is until a group's next check is due, by one index probe; null when it has no pending half.
SELECT extract(EPOCH FROM min(next_check_at) - now())::double precision AS seconds
FROM half_message
WHERE producer_group_id = %(group_id)s AND discarded_at IS NULL AND NOT exhausted
