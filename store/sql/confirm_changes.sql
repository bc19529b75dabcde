-- Confirm to other processes that this process has dropped its caches, by one notice for each change; no row is
-- written.
SELECT pg_notify(%(channel)s, c.payload) FROM unnest(%(payloads)s::text []) AS c (payload)
