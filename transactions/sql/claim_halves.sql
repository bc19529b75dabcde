-- Claim a group's halves that are due for a check: until the lease is over nobody else asks about them. Rows that another
-- worker is just claiming are skipped. Nothing is counted here: a worker that dies now has asked nobody. An array and not
-- a join: no plan can then go through all halves. With `topic_ids` only what belongs to these topics altogether.
UPDATE half_message AS h
SET next_check_at = now() + make_interval(secs => %(lease_seconds)s)
WHERE h.transaction_id = any(array(
    SELECT d.transaction_id
    FROM half_message AS d
    WHERE
        d.producer_group_id = %(group_id)s AND d.discarded_at IS NULL AND NOT d.exhausted AND d.next_check_at <= now()
        AND (%(topic_ids)s::integer [] IS NULL OR d.topic_ids <@ %(topic_ids)s::integer [])
    ORDER BY d.next_check_at
    LIMIT %(max_halves)s
    FOR UPDATE SKIP LOCKED
))
RETURNING
    h.transaction_id, h.endpoint_id, h.check_times, h.log_segment, h.log_offsets, h.stored_at, h.last_failure
