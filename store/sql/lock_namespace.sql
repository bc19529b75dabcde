-- Find a namespace that is registered, and hold its row: of two requests that make a topic, one counts that of the other.
SELECT id, name, max_topics, messages_per_second, bytes_per_second, max_undecided FROM namespace
WHERE name = %(name)s FOR UPDATE
