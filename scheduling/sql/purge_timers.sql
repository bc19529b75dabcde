-- Delete timers of topics that have left this database for another cell, which releases their copies. Reads max_timers
-- timers in the order of due time and id, after a given due time and id. A timer that another transaction releases is
-- skipped: the release drops it. Returns the due time and id of the last timer that was read; no row at the end.
-- Row: The due time and id of the last timer that was read, and how many timers were deleted.
WITH looked_at AS MATERIALIZED (
    SELECT t.id, t.due_at, t.topic_id, t.queue_id
    FROM timer AS t
    WHERE (t.due_at, t.id) > (%(due_at)s::timestamptz, %(id)s::uuid)
    ORDER BY t.due_at, t.id
    LIMIT %(max_timers)s
    FOR UPDATE SKIP LOCKED
),

gone AS (
    DELETE FROM timer AS t
    USING looked_at AS l
    WHERE
        t.id = l.id
        AND (
            l.topic_id = any(%(topics)s::integer [])
            OR l.topic_id::bigint << 32 | l.queue_id = any(%(queues)s::bigint [])
        )
    RETURNING 1
)

SELECT l.due_at, l.id, (SELECT count(*) FROM gone) AS purged
FROM looked_at AS l
ORDER BY l.due_at DESC, l.id DESC
LIMIT 1
