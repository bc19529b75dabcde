-- The undecided transactions for the export, by the segment of their messages. For a discarded transaction, the last
-- discard counts as its decision.
SELECT
    h.log_segment AS segment, h.transaction_id, g.name AS producer_group,
    CASE WHEN strpos(g.name, chr(37)) > 1 THEN split_part(g.name, chr(37), 1) END AS namespace,
    CASE WHEN h.discarded_at IS NULL THEN 'PREPARED' ELSE 'DISCARDED' END AS state,
    h.stored_at AS prepared_at, h.discarded_at AS decided_at, discard.decided_by,
    extract(EPOCH FROM h.discarded_at - h.stored_at)::double precision AS seconds_to_decision, h.check_times,
    coalesce(cardinality(h.log_offsets), 1) AS messages, discard.remark, false AS copied
FROM half_message AS h
LEFT JOIN producer_group AS g ON h.producer_group_id = g.id
LEFT JOIN LATERAL (
    SELECT o.decided_by, o.remark
    FROM operation AS o
    WHERE h.discarded_at IS NOT NULL AND o.transaction_id = h.transaction_id AND o.decision = 'DISCARD'
    ORDER BY o.operation_id DESC
    LIMIT 1
) AS discard ON true
