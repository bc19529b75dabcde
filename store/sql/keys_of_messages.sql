-- Read the keys of messages by their log offsets, of those that have keys: one index probe per offset and segment kept.
SELECT m.log_offset, m.keys
FROM commit_log AS m
WHERE m.log_offset = any(%(log_offset)s::bigint []) AND m.keys IS NOT NULL
