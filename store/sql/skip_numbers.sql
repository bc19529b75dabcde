-- Move every sequence of this database ahead, so that what is numbered here from now on has numbers of its own. Behind a fence.
SELECT count(setval(format('%%I.%%I', s.schemaname, s.sequencename)::regclass, coalesce(s.last_value, 0) + %(by)s)) AS moved
FROM pg_sequences AS s
WHERE s.schemaname = current_schema()
