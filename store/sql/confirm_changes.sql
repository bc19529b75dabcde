-- Confirm to other processes that this process has dropped its caches, one notice for each change. It writes no row.
SELECT pg_notify(%(channel)s, c.payload) FROM unnest(%(payloads)s::text []) AS c (payload)
