-- The messages of a closed range.
SELECT count(*)
FROM commit_log
WHERE segment_id = %(segment_id)s AND log_offset BETWEEN %(first)s AND %(last)s
