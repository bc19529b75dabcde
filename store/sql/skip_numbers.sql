-- Move every sequence of this database ahead, so that rows written here from now on have numbers that no other cell
-- uses. Called during a fence.
SELECT count(setval(format('%%I.%%I', s.schemaname, s.sequencename)::regclass, coalesce(s.last_value, 0) + %(by)s)) AS moved
FROM pg_sequences AS s
WHERE s.schemaname = current_schema()
