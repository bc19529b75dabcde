-- Count a group's pending transactions, up to a limit: beyond it the exact number does not matter. Discarded ones wait
-- for an operator, and must not keep their group from beginning others.
SELECT count(*) AS undecided
FROM (
    SELECT 1
    FROM half_message
    WHERE producer_group_id = %(id)s AND discarded_at IS NULL
    LIMIT %(max_count)s
) AS counted
