-- Find how many closed segments no export holds whole, that retention has not begun to drop, and what it dropped without
-- one. An export counts when it went to the folder that is named, or to any where none is.
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
