-- Find whether a group nacked one delivery of a message with a reason, by the index of nacks. A message that was
-- reappended after the nack has another log offset, so its nack is not found.
SELECT
    EXISTS (
        SELECT
        FROM nack AS n
        WHERE
            n.log_offset = %(log_offset)s AND n.group_id = %(group_id)s AND n.reconsume_times = %(reconsume_times)s
    ) AS found
