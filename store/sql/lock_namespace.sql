-- Find a namespace that is registered, and hold its row: of two requests that make a topic, one counts that of the other.
SELECT id, name, max_topics FROM namespace WHERE name = %(name)s FOR UPDATE
