-- Find whether a group gave a message back with a reason at one of its deliveries: by the index of nacks. What was stored again
-- since then has none.
SELECT
    EXISTS (
        SELECT
        FROM nack AS n
        WHERE
            n.log_offset = %(log_offset)s AND n.group_id = %(group_id)s AND n.reconsume_times = %(reconsume_times)s
    ) AS found
