-- Lock the progress of groups in the topics that a batch reads, each with one lock for the topic and one for its
-- retries, and the rows of the groups that are neither paused nor ordered, and whose messages wait by the expected
-- keys: an update of a group waits for the end of the transaction, so no message is handed out after a pause was
-- answered. Advisory locks are taken in sorted order, then rows in id order, so no two transactions deadlock. With
-- `only_free` the statement skips an advisory lock that another session holds instead of waiting; a locked row is
-- always skipped. The register `mq.readings` passes on the numbers of the readings that have all of their locks. A
-- later statement, whose snapshot is newer, reads the rows that the locks guard.
WITH tried AS MATERIALIZED (
    SELECT
        sorted.reading, sorted.group_id, sorted.fair_by, sorted.limits_by,
        CASE
            WHEN %(only_free)s::boolean THEN pg_try_advisory_xact_lock(sorted.key)
            ELSE pg_advisory_xact_lock(sorted.key) IS NOT NULL
        END AS held
    FROM (
        SELECT k.*
        FROM unnest(
            %(key)b::bigint [], %(key_reading)b::integer [], %(key_group_id)b::integer [], %(key_fair_by)b::text [],
            %(key_limits_by)b::text []
        ) AS k (key, reading, group_id, fair_by, limits_by)
        ORDER BY k.key
    ) AS sorted
    OFFSET 0
),

held AS MATERIALIZED (
    SELECT t.reading, t.group_id, t.fair_by, t.limits_by
    FROM tried AS t
    GROUP BY t.reading, t.group_id, t.fair_by, t.limits_by
    HAVING bool_and(t.held)
),

running AS MATERIALIZED (
    SELECT g.id, g.fair_by, g.limits ->> 'by' AS limits_by
    FROM consumer_group AS g
    WHERE g.id = any(array(SELECT h.group_id FROM held AS h)) AND NOT g.paused AND NOT g.ordered
    ORDER BY g.id
    FOR SHARE SKIP LOCKED
)

SELECT set_config('mq.readings', coalesce(string_agg(h.reading::text, ','), ''), true) AS readings
FROM held AS h
INNER JOIN running AS r
    ON
        h.group_id = r.id AND h.fair_by IS NOT DISTINCT FROM r.fair_by
        AND h.limits_by IS NOT DISTINCT FROM r.limits_by
