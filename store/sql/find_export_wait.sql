-- Count the closed segments that no export holds whole and retention has not begun to drop, and the segments that were
-- dropped without an export. Only exports to `target` count, if it is given.
-- Row: The number of closed segments in no export, and the number of segments dropped without an export.
-- Null: last_dropped_at.
SELECT
    (
        SELECT count(*)
        FROM segment AS s
        WHERE s.state = 'closed' AND s.id > held.segment_id AND to_regclass('consume_queue_' || s.id) IS NOT NULL
    ) AS waiting,
    (SELECT count(*) FROM segment AS s WHERE s.unexported_at IS NOT NULL) AS dropped,
    (SELECT max(s.unexported_at) FROM segment AS s) AS last_dropped_at
FROM (
    SELECT coalesce(max(e.segment_id), 0) AS segment_id
    FROM export AS e
    WHERE e.target = %(target)s OR %(target)s = ''
) AS held
