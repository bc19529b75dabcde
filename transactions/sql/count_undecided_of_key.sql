-- Count the pending transactions of an API key with a limit, up to the limit, by the index of pending transactions by
-- key. Discarded transactions wait for an operator and do not count, so that the key can begin others.
SELECT count(*) AS undecided
FROM (
    SELECT 1
    FROM half_message
    WHERE api_key_id = %(id)s AND discarded_at IS NULL
    LIMIT %(max_count)s
) AS counted
