-- Estimate how many messages are kept, by the ends of the log: two index probes in each partition.
SELECT coalesce(max(log_offset) - min(log_offset) + 1, 0)
FROM commit_log
