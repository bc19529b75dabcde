-- Find whether consumers can see a message: whether any of its log positions has an entry in a topic other than the
-- given hidden ones. The entry may be only a retry or a dead letter, after retention has dropped the first entry. The
-- topic is looked up for each entry by itself, because with a join the planner would read all entries.
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
