-- Find the holder of an API key by the key's digest, with the limits of its namespace. No row for a key that is expired
-- by the database's clock.
SELECT
    k.id, k.name, k.scopes, k.messages_per_second, k.bytes_per_second, k.max_undecided, k.namespace,
    n.id AS namespace_id, n.messages_per_second AS messages_of_namespace, n.bytes_per_second AS bytes_of_namespace,
    n.max_undecided AS undecided_of_namespace
FROM api_key AS k
LEFT JOIN namespace AS n ON k.namespace = n.name
WHERE k.digest = %(digest)s AND coalesce(k.expires_at > now(), true)
