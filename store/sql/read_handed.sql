-- Read the messages that the register `mq.handed` names as `segment log_offset,…`: those that the transaction before handed
-- out on this connection. Behind a pooler it may be another connection's: the reader compares the log positions, and reads by
-- them what it misses. Each message is probed by index on its own, as in read_entries.
SELECT m.*
FROM (
    SELECT string_to_array(given.position, ' ')::bigint [] AS n
    FROM string_to_table(nullif(current_setting('mq.handed', true), ''), ',') AS given (position)
) AS h
CROSS JOIN LATERAL (
    SELECT l.* FROM commit_log AS l
    WHERE l.segment_id = h.n[1] AND l.log_offset = h.n[2]
    LIMIT 1
) AS m
