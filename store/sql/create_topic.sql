-- Create a topic, or let it grow to so many queues; it never shrinks. Two processes may do the same at once.
INSERT INTO topic (name, queues, permission)
VALUES (%(name)s, %(queues)s, 'rw')
ON CONFLICT (name) DO UPDATE SET queues = excluded.queues WHERE topic.queues < excluded.queues
