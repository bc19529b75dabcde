-- Read the keys of messages that have some, by their log offsets: one index probe for each offset and segment.
SELECT m.log_offset, m.keys
FROM commit_log AS m
WHERE m.log_offset = any(%(log_offset)s::bigint []) AND m.keys IS NOT NULL
