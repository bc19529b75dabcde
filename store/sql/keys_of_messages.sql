-- Read the keys of messages that have some, by their log offsets: one index probe for each offset and segment.
-- Row: The keys of a message, by its log offset.
SELECT m.log_offset, m.keys
FROM commit_log AS m
WHERE m.log_offset = any(%(log_offset)s::bigint []) AND m.keys IS NOT NULL
