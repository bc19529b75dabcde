-- Note checks that decided nothing. A check that asked a producer is counted, and the next check is due an interval
-- later. A check that reached no endpoint is not counted. A half message that was ended meanwhile has no row any more,
-- and none is created. The ids are probed as an array, and the condition on `discarded_at` is written as a CASE, so
-- that no plan can scan all half messages or the partial index of due checks.
WITH outcome AS (
    SELECT *
    FROM unnest(
        %(transaction_id)b::uuid [], %(counted)b::boolean [], %(reason)b::text [], %(wait_seconds)b::double precision []
    ) AS o (transaction_id, counted, reason, wait_seconds)
),

locked AS (
    SELECT h.transaction_id
    FROM half_message AS h
    INNER JOIN outcome AS o ON h.transaction_id = o.transaction_id
    WHERE h.transaction_id = any(%(transaction_id)b::uuid []) AND CASE WHEN h.discarded_at IS NULL THEN true END
    ORDER BY h.transaction_id
    FOR UPDATE OF h
)

UPDATE half_message AS h
SET
    check_times = h.check_times + o.counted::integer,
    exhausted = h.check_times + o.counted::integer >= %(check_max)s,
    last_failure = o.reason,
    next_check_at = now() + make_interval(secs => o.wait_seconds)
FROM outcome AS o
WHERE h.transaction_id = o.transaction_id AND h.transaction_id = any(array(SELECT l.transaction_id FROM locked AS l))
