-- Read the operations for Spark, which adds the closed range of each slice.
SELECT
    segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times, stored_at,
    cardinality(log_offsets) AS messages, remark
FROM operation
