-- Turn a segment from one state to the next (ready, open, closed, dropped), and note the time; nothing if it has
-- another state. The open segment is closed, and the next one opened, in one transaction of a caller that holds the log
-- alone. So no write is under way, no row is added to a closed segment, and exactly one segment is open at any time. A
-- segment is dropped when none of its partitions is left.
UPDATE segment
SET
    state = %(state)s::text,
    opened_at = CASE WHEN %(state)s::text = 'open' THEN clock_timestamp() ELSE opened_at END,
    closed_at = CASE WHEN %(state)s::text = 'closed' THEN clock_timestamp() ELSE closed_at END,
    dropped_at = CASE WHEN %(state)s::text = 'dropped' THEN clock_timestamp() ELSE dropped_at END
WHERE id = %(segment_id)s AND state = %(before)s::text
