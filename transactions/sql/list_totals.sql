-- List how many transactions of each topic and producer group were ever committed, rolled back and discarded: the
-- totals, and the operations that are not counted into them yet, up to a limit. Both are of one snapshot, so no
-- operation is missed or counted twice. A transaction with messages of several topics counts once for each topic. Only
-- the totals of one topic or of one producer group are listed if its name is given, and only topics whose names begin
-- with one of `starts`; all names begin with the empty text.
-- Row: The numbers of ends of a producer group's transactions with messages of a topic. Each discard counts.
WITH own AS (
    SELECT coalesce((i.first_numbers ->> 'operation_id')::bigint, 0) AS first_operation FROM cell_identity AS i
),

place AS (
    SELECT own.first_operation, coalesce(c.next_id, own.first_operation) AS next_id
    FROM own
    LEFT JOIN counted_operations AS c ON own.first_operation = c.first_operation
),

found AS (
    SELECT t.topic_id, t.producer_group_id, t.committed, t.rolled_back, t.discarded
    FROM transaction_total AS t
    WHERE t.first_operation = (SELECT p.first_operation FROM place AS p)
    UNION ALL
    SELECT
        its.topic_id, o.producer_group_id,
        count(*) FILTER (WHERE o.decision = 'COMMIT'),
        count(*) FILTER (WHERE o.decision = 'ROLLBACK'),
        count(*) FILTER (WHERE o.decision = 'DISCARD')
    FROM operation AS o
    CROSS JOIN LATERAL (
        SELECT DISTINCT each.topic_id FROM unnest(coalesce(o.topic_ids, ARRAY[o.topic_id])) AS each (topic_id)
    ) AS its
    WHERE
        o.operation_id >= (SELECT p.next_id FROM place AS p)
        AND o.operation_id < (SELECT p.next_id + %(max_operations)s FROM place AS p)
    GROUP BY its.topic_id, o.producer_group_id
    HAVING count(*) FILTER (WHERE o.decision IN ('COMMIT', 'ROLLBACK', 'DISCARD')) > 0
)

SELECT
    t.name AS topic,
    coalesce(g.name, '(deleted producer group ' || f.producer_group_id || ')') AS producer_group,
    sum(f.committed)::bigint AS committed, sum(f.rolled_back)::bigint AS rolled_back,
    sum(f.discarded)::bigint AS discarded
FROM found AS f
INNER JOIN topic AS t ON f.topic_id = t.id
LEFT JOIN producer_group AS g ON f.producer_group_id = g.id
WHERE
    (%(topic)s::text IS NULL OR t.name = %(topic)s::text)
    AND (%(producer_group)s::text IS NULL OR g.name = %(producer_group)s::text)
    AND t.name ^@ any(%(starts)s::text [])
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT %(max_rows)s
