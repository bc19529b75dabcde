-- Create a topic, or let it grow to so many queues; it never shrinks. One of the broker's own, which is given `r`, also gets
-- that where it has another permission. Two processes may do the same at once.
INSERT INTO topic (name, queues, permission)
VALUES (%(name)s, %(queues)s, %(permission)s)
ON CONFLICT (name) DO UPDATE
SET
    queues = greatest(topic.queues, excluded.queues),
    permission = CASE WHEN excluded.permission = 'r' THEN 'r' ELSE topic.permission END
WHERE topic.queues < excluded.queues OR (excluded.permission = 'r' AND topic.permission <> 'r')
