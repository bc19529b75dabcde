-- Read messages by their log positions. A log offset is in one segment only; with the segment other partitions are not
-- probed.
SELECT m.*
FROM commit_log AS m
WHERE m.log_offset = any(%(log_offset)s::bigint []) AND m.segment_id = any(%(segment_id)s::integer [])
