-- Find whether a process of this kind on this host has written a heartbeat within the given number of seconds. Returns
-- one row.
SELECT EXISTS (
    SELECT 1 FROM heartbeat AS h
    WHERE
        h.kind = %(kind)s AND h.process LIKE '%% at ' || %(host)s
        AND h.beaten_at > now() - make_interval(secs => %(seconds)s)
) AS is_alive
