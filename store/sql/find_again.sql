-- Find the new log positions, in the open segment, of stored messages that were appended again.
-- Row: The old and the new log offset of a message that was appended again.
SELECT old.segment_id AS log_segment, old.log_offset, again.log_offset AS new_offset
FROM commit_log AS old
CROSS JOIN LATERAL (
    SELECT m.log_offset
    FROM commit_log AS m
    WHERE m.message_id = old.message_id AND m.segment_id = %(segment_id)s
    LIMIT 1
) AS again
WHERE old.log_offset = any(%(log_offset)b::bigint []) AND old.segment_id = any(%(log_segment)b::integer [])
