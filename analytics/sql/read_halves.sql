-- Read the undecided transactions, a discarded one with the last operation that discarded it.
SELECT
    h.transaction_id, h.producer_group_id, h.stored_at, h.check_times, h.discarded_at,
    cardinality(h.log_offsets) AS messages, discard.decided_by, discard.remark
FROM half_message AS h
LEFT JOIN LATERAL (
    SELECT o.decided_by, o.remark
    FROM operation AS o
    WHERE h.discarded_at IS NOT NULL AND o.transaction_id = h.transaction_id AND o.decision = 'DISCARD'
    ORDER BY o.operation_id DESC
    LIMIT 1
) AS discard ON true
