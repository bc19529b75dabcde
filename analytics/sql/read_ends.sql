-- The ended transactions for the export, which adds the closed range of each slice. Operations that do not end a
-- transaction are left out.
SELECT
    o.segment_id, o.segment_id AS segment, o.operation_id, o.transaction_id, g.name AS producer_group,
    CASE WHEN strpos(g.name, chr(37)) > 1 THEN split_part(g.name, chr(37), 1) END AS namespace,
    CASE o.decision WHEN 'COMMIT' THEN 'COMMITTED' ELSE 'ROLLED_BACK' END AS state,
    o.stored_at AS prepared_at, o.decided_at, o.decided_by,
    extract(EPOCH FROM o.decided_at - o.stored_at)::double precision AS seconds_to_decision, o.check_times,
    coalesce(cardinality(o.log_offsets), 1) AS messages, o.remark,
    (
        o.operation_id < (SELECT (i.first_numbers ->> 'operation_id')::bigint FROM cell_identity AS i)
    ) IS TRUE AS copied
FROM operation AS o
LEFT JOIN producer_group AS g ON o.producer_group_id = g.id
WHERE o.decision IN ('COMMIT', 'ROLLBACK')
