-- Find a registered namespace by its name.
SELECT id, name, max_topics, messages_per_second, bytes_per_second, max_undecided FROM namespace WHERE name = %(name)s
