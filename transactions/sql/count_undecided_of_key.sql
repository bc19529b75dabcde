-- Count the pending transactions that an API key with a limit of them began, up to that limit, by the index of such
-- transactions. Discarded ones wait for an operator, and must not keep the key from beginning others.
SELECT count(*) AS undecided
FROM (
    SELECT 1
    FROM half_message
    WHERE api_key_id = %(id)s AND discarded_at IS NULL
    LIMIT %(max_count)s
) AS counted
