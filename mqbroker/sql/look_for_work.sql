-- Find whether this cell has rows that will need work later: undecided half messages, timers,
-- messages in delivery, unreleased entries of delay levels, and subscriptions to the cell's own topics. Each part stops
-- at the first row that it finds; if nothing waits, the poll ends here.
SELECT
    EXISTS (SELECT 1 FROM half_message)
    OR EXISTS (SELECT 1 FROM timer)
    OR EXISTS (SELECT 1 FROM receipt AS r WHERE r.state IN ('flight', 'held', 'parked'))
    OR EXISTS (SELECT 1 FROM bundle)
    OR EXISTS (SELECT 1 FROM waiting)
    OR EXISTS (
        SELECT 1
        FROM subscription AS s
        INNER JOIN topic AS t ON s.topic_name = t.name
        WHERE t.cell_id = (SELECT i.cell_id FROM cell_identity AS i)
    )
    OR EXISTS (
        SELECT 1
        FROM topic AS t
        CROSS JOIN LATERAL generate_series(0, t.queues - 1) AS q (queue_id)
        CROSS JOIN LATERAL (
            SELECT c.queue_offset
            FROM consume_queue AS c
            WHERE c.topic_id = t.id AND c.queue_id = q.queue_id
            ORDER BY c.queue_offset DESC
            LIMIT 1
        ) AS newest
        LEFT JOIN LATERAL (
            SELECT p.next_offset
            FROM progress AS p
            WHERE p.reader_id = %(scheduler)s AND p.topic_id = t.id AND p.queue_id = q.queue_id
            ORDER BY p.move DESC
            LIMIT 1
        ) AS released ON true
        WHERE t.name = %(schedule_topic)s AND newest.queue_offset >= coalesce(released.next_offset, 0)
    ) AS waits
