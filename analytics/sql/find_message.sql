-- Find the message at a log offset, and whether its segment is kept: an export that has this offset must have this
-- message.
-- Row: The message at a log offset, if it is there, and whether its segment holds any.
-- Null: message_id.
SELECT
    (
        SELECT l.message_id
        FROM commit_log AS l
        WHERE l.segment_id = %(segment_id)s AND l.log_offset = %(log_offset)s
    ) AS message_id,
    EXISTS (SELECT FROM commit_log AS l WHERE l.segment_id = %(segment_id)s) AS is_kept
