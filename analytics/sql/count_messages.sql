-- Count the messages of a closed range of the commit log; an export holds all of them.
-- Row: The number of rows of a closed range that exist, and how many of them an export must hold.
SELECT count(*) AS there, count(*) AS counted
FROM commit_log
WHERE segment_id = %(segment_id)s AND log_offset BETWEEN %(first)s AND %(last)s
