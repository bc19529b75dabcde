-- Count a group's undecided transactions, up to a limit: beyond it the exact number does not matter.
SELECT count(*) AS undecided
FROM (SELECT 1 FROM half_message WHERE producer_group_id = %(group_id)s LIMIT %(max_count)s) AS counted
