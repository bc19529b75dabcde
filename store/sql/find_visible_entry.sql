-- Find whether consumers can see a message: whether any of its copies has an entry in a topic but the given ones, where
-- messages wait or are set aside. That may be a retry or a dead letter alone, once retention has dropped its first entry. The
-- name is asked of each entry by itself: as a join it would have the planner walk all entries.
SELECT e.topic_id
FROM commit_log AS m
CROSS JOIN LATERAL (
    SELECT c.topic_id
    FROM consume_queue AS c
    WHERE
        c.log_offset = m.log_offset
        AND (SELECT t.name = any(%(hidden)s::text []) FROM topic AS t WHERE t.id = c.topic_id) IS NOT TRUE
    LIMIT 1
) AS e
WHERE m.message_id = %(message_id)s
LIMIT 1
