-- Find the holder of an API key by the key's digest. An expired key is as good as none, by the database's clock.
SELECT name, scopes
FROM api_key
WHERE digest = %(digest)s AND coalesce(expires_at > now(), true)
