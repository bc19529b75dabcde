-- Estimate the number of kept messages from the first and last log offset: two index probes in each partition.
SELECT coalesce(max(log_offset) - min(log_offset) + 1, 0) AS messages
FROM commit_log
