-- Find the holder of an API key by the key's digest. An expired key is as good as none, by the database's clock.
SELECT id, name, scopes, messages_per_second, bytes_per_second, max_undecided
FROM api_key
WHERE digest = %(digest)s AND coalesce(expires_at > now(), true)
