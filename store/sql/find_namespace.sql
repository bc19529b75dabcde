-- Find a namespace that is registered, by its name.
SELECT id, name, max_topics FROM namespace WHERE name = %(name)s
