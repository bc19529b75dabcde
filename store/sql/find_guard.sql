-- Find the guard that names the topics which have left this cell; most cells have no guard. Reads only the catalog.
SELECT pg_get_constraintdef(c.oid) AS expression
FROM pg_constraint AS c
WHERE c.conname = 'topic_has_gone' AND c.conrelid = 'commit_log'::regclass
