-- Count a group's pending transactions, up to a limit: a higher number need not be exact. Discarded
-- transactions wait for an operator and do not count, so that the group can begin others.
SELECT count(*) AS undecided
FROM (
    SELECT 1
    FROM half_message
    WHERE producer_group_id = %(id)s AND discarded_at IS NULL
    LIMIT %(max_count)s
) AS counted
