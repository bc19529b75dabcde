-- Find a registered namespace by its name.
-- Row: A registered namespace with its limits; None means no limit.
-- Null: max_topics, messages_per_second, bytes_per_second, max_undecided.
SELECT id, name, max_topics, messages_per_second, bytes_per_second, max_undecided FROM namespace WHERE name = %(name)s
