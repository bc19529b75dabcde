-- The rows of a closed range of the commit log, and how many of them are exported: all.
SELECT count(*) AS there, count(*) AS counted
FROM commit_log
WHERE segment_id = %(segment_id)s AND log_offset BETWEEN %(first)s AND %(last)s
