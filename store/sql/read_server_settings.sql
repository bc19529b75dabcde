-- Read the settings with these names as this session sees them: the value, where the value was set, and when a change
-- takes effect. A name that this version of PostgreSQL does not know has no row.
-- Row: A setting of the server. `source`: where it was set; `context`: when a change takes effect.
SELECT s.name, s.setting AS value, s.source, s.context
FROM pg_settings AS s
WHERE s.name = ANY(%(names)s)
ORDER BY s.name
