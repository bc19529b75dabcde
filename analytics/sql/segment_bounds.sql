-- Find the first and last offset of a segment's messages and operations: four index probes in one partition each.
-- Row: The first and last offset of a segment's messages and of its operations; None where it holds none.
-- Null: first_log_offset, last_log_offset, first_operation_id, last_operation_id.
SELECT
    (SELECT min(log_offset) FROM commit_log WHERE segment_id = %(segment_id)s) AS first_log_offset,
    (SELECT max(log_offset) FROM commit_log WHERE segment_id = %(segment_id)s) AS last_log_offset,
    (SELECT min(operation_id) FROM operation WHERE segment_id = %(segment_id)s) AS first_operation_id,
    (SELECT max(operation_id) FROM operation WHERE segment_id = %(segment_id)s) AS last_operation_id
