-- Take back checks that were handed to a poll whose producer has closed the connection: the producer did not get them,
-- so they do not count and are due at once. A half message that was ended or discarded meanwhile is not changed. The
-- rows are locked in the order of ids, and probed as an array, as in `postpone_checks`.
WITH locked AS (
    SELECT h.transaction_id
    FROM half_message AS h
    WHERE
        h.transaction_id = any(%(transaction_ids)s::uuid []) AND h.check_times > 0
        AND CASE WHEN h.discarded_at IS NULL THEN true END
    ORDER BY h.transaction_id
    FOR UPDATE
)

UPDATE half_message AS h
SET check_times = h.check_times - 1, exhausted = false, last_failure = %(reason)s::text, next_check_at = now()
WHERE h.transaction_id = any(array(SELECT l.transaction_id FROM locked AS l))
