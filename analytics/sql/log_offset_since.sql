-- Find the first log offset and the first operation of a closed range from a time on; null where there is none. It
-- reads the times of the whole range, but only once at the start of a stream; an index on the time would slow every
-- write down.
-- Row: The first log offset and the first operation from a time on.
-- Null: log_offset, operation_id.
SELECT
    (
        SELECT min(l.log_offset)
        FROM commit_log AS l
        WHERE l.stored_at >= %(since)s AND l.log_offset <= %(last_log_offset)s
    ) AS log_offset,
    (
        SELECT min(o.operation_id)
        FROM operation AS o
        WHERE o.decided_at >= %(since)s AND o.operation_id <= %(last_operation_id)s
    ) AS operation_id
