-- Read the messages of one file of an export again, for a verification: each body as it is stored. A dropped segment has
-- no rows.
-- Row: A stored message by its log offset: its id, its body, and the form of the body.
SELECT log_offset, message_id, body, body_form
FROM commit_log
WHERE segment_id = %(segment_id)s AND log_offset BETWEEN %(first)s AND %(last)s
