-- Read the messages in the register `mq.handed`, as `segment log_offset,…`, which the transaction before has handed out
-- on this connection. Behind a pooler the register may belong to another client: the caller compares the log positions,
-- and reads missing messages by their positions. Each message is looked up by a separate index probe, as in
-- read_entries.
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
