-- Find a registered namespace and lock its row, so that of two requests that create a topic the second counts the topic
-- of the first.
SELECT id, name, max_topics, messages_per_second, bytes_per_second, max_undecided FROM namespace
WHERE name = %(name)s FOR UPDATE
