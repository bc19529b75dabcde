-- Find where stored messages lie in the open segment, those that were appended to it again.
SELECT asked.log_segment, asked.log_offset, again.log_offset AS new_offset
FROM unnest(%(log_segment)b::integer [], %(log_offset)b::bigint []) AS asked (log_segment, log_offset)
INNER JOIN commit_log AS old ON asked.log_segment = old.segment_id AND asked.log_offset = old.log_offset
INNER JOIN commit_log AS again ON old.message_id = again.message_id AND again.segment_id = %(segment_id)s
