-- Read the settings of the server by these names, as it has them and not as this session was given them: where each was set, and
-- when a change holds. A name that this version of PostgreSQL does not know has no row.
SELECT s.name, s.setting AS value, s.source, s.context
FROM pg_settings AS s
WHERE s.name = ANY(%(names)s)
ORDER BY s.name
