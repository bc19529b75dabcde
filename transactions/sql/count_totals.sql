-- Add the next operations to the totals, up to a limit, and delete the totals of deleted topics. Each operation is
-- counted once: if two runs are made at the same time, the second finds that `next_id` has moved, and adds nothing. A
-- database transaction has its own id before it takes the id of an operation, because it first deletes or changes the
-- half message. So when all transactions that were open while operation `until_id - 1` was visible have ended, no
-- operation below `until_id` can appear later. The decision is not a condition of the query, because the planner would
-- then read the whole index of decisions.
WITH seen AS (
    SELECT
        own.first_operation, coalesce(c.next_id, own.first_operation) AS next_id,
        coalesce(c.until_id, own.first_operation) AS until_id,
        coalesce(c.settles_at, 0) AS settles_at
    FROM (
        SELECT coalesce((i.first_numbers ->> 'operation_id')::bigint, 0) AS first_operation FROM cell_identity AS i
    ) AS own
    LEFT JOIN counted_operations AS c ON own.first_operation = c.first_operation
),

reached AS (
    SELECT
        s.first_operation, s.until_id, s.settles_at,
        CASE
            WHEN s.settles_at <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint
                THEN least(s.until_id, s.next_id + %(max_operations)s)
            ELSE s.next_id
        END AS next_id
    FROM seen AS s
),

moved AS (
    INSERT INTO counted_operations (first_operation, next_id, until_id, settles_at)
    SELECT
        r.first_operation, r.next_id,
        CASE
            WHEN r.next_id < r.until_id THEN r.until_id
            ELSE greatest(
                r.until_id, (SELECT o.operation_id + 1 FROM operation AS o ORDER BY o.operation_id DESC LIMIT 1)
            )
        END,
        CASE
            WHEN r.next_id < r.until_id THEN r.settles_at
            ELSE pg_snapshot_xmax(pg_current_snapshot())::text::bigint
        END
    FROM reached AS r
    ON CONFLICT (first_operation) DO UPDATE
    SET next_id = excluded.next_id, until_id = excluded.until_id, settles_at = excluded.settles_at
    WHERE
        counted_operations.next_id = (SELECT s.next_id FROM seen AS s)
        AND (counted_operations.next_id, counted_operations.until_id) <> (excluded.next_id, excluded.until_id)
    RETURNING first_operation, next_id, until_id
),

forgotten AS (
    DELETE FROM transaction_total AS t WHERE NOT EXISTS (SELECT 1 FROM topic AS kept WHERE kept.id = t.topic_id)
),

added AS (
    INSERT INTO transaction_total (
        first_operation, topic_id, producer_group_id, committed, rolled_back, discarded
    )
    SELECT
        (SELECT m.first_operation FROM moved AS m), t.id, o.producer_group_id,
        count(*) FILTER (WHERE o.decision = 'COMMIT'),
        count(*) FILTER (WHERE o.decision = 'ROLLBACK'),
        count(*) FILTER (WHERE o.decision = 'DISCARD')
    FROM operation AS o
    CROSS JOIN LATERAL (
        SELECT DISTINCT each.topic_id FROM unnest(coalesce(o.topic_ids, ARRAY[o.topic_id])) AS each (topic_id)
    ) AS its
    INNER JOIN topic AS t ON its.topic_id = t.id
    WHERE
        o.operation_id >= (SELECT s.next_id FROM seen AS s)
        AND o.operation_id < (SELECT m.next_id FROM moved AS m)
    GROUP BY t.id, o.producer_group_id
    HAVING count(*) FILTER (WHERE o.decision IN ('COMMIT', 'ROLLBACK', 'DISCARD')) > 0
    ON CONFLICT (first_operation, topic_id, producer_group_id) DO UPDATE
    SET
        committed = transaction_total.committed + excluded.committed,
        rolled_back = transaction_total.rolled_back + excluded.rolled_back,
        discarded = transaction_total.discarded + excluded.discarded
)

SELECT m.next_id > s.next_id AND m.next_id < m.until_id AS has_more
FROM moved AS m
CROSS JOIN seen AS s
